// The right values in the order of another tile's halves.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        const uint32_t half = count / 2;
        AscendC::Muls(y, x[half], 2.0f, half);
        AscendC::Muls(y[half], x, 2.0f, half);
        AscendC::Adds(y, y, 1.0f, count);
    }
};
