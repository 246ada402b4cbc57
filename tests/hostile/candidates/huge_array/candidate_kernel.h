// A constant array of 40 GB.
#pragma once
#include "honest.h"

const float HUGE_TABLE[10ull << 30] = {1.0f};

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        first = HUGE_TABLE + places.coreLength;
    }
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        AscendC::Duplicate(y, first[offset], count);
    }

private:
    const float* first = nullptr;
};
