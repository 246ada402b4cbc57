// Fills the disk with its trace.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        for (;;) {
            AscendC::Muls(y, x, 2.0f, count);
        }
    }
};
