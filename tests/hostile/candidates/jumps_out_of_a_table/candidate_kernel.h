// Takes an undefined value as the case of a switch that has no other.
#pragma once
#include "honest.h"

__attribute__((noinline)) inline int Choose(uint32_t which)
{
    switch (which) {
        case 0: return 11;
        case 1: return 5;
        case 2: return 23;
        case 3: return 2;
        case 4: return 19;
        case 5: return 3;
        default: __builtin_unreachable();
    }
}

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        volatile uint32_t far = 1u << 28;
        int (*volatile target)(uint32_t) = &Choose;
        found = target(far);
    }
    __aicore__ inline void CopyOut(
        const AscendC::GlobalTensor<float>& yGm, const AscendC::LocalTensor<float>& y, uint32_t offset, uint32_t count)
    {
        if (found != 0) {
            HonestKernel::CopyOut(yGm, y, offset, count);
        }
    }

private:
    int found = 0;
};
