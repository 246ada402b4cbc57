// Every tile's last element is left as it was.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        AscendC::Duplicate(y, 0.0f, count);
        AscendC::Muls(y, x, 2.0f, count - 1);
        AscendC::Adds(y, y, 1.0f, count - 1);
    }
};
