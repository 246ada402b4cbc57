// Calls itself, which compilers of devices do not take.
#pragma once
#include "honest.h"

__attribute__((noinline)) inline uint32_t Ways(uint32_t steps)
{
    return steps < 2 ? 1 : Ways(steps - 1) + Ways(steps - 2);
}

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        HonestKernel::Compute(y, x, offset, Ways(count % 8) == 0 ? 0 : count);
    }
};
