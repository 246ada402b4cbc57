// Not a number compares false with every tolerance.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        AscendC::Duplicate(y, 0.0f, count);
        AscendC::Div(y, y, y, count);
    }
};
