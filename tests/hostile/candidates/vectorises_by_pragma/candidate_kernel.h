// Asks the compiler of the host for vector code.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        const float* from = (const float*)x.GetPhyAddr();
        float* to = (float*)y.GetPhyAddr();
#pragma clang loop vectorize(enable) vectorize_width(8)
        for (uint32_t i = 0; i < count; ++i) {
            to[i] = 2.0f * from[i] + 1.0f;
        }
    }
};
