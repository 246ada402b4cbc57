// Distances between bursts that wrap around to where the copy began.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        AscendC::GlobalTensor<float> from;
        from.SetGlobalBuffer((__gm__ float*)nullptr, count);
        const AscendC::DataCopyExtParams params(3, 32, 0xffffffffu, 0xffffffffu, 0);
        AscendC::DataCopyPad(y, from, params, AscendC::DataCopyPadExtParams<float>());
    }
};
