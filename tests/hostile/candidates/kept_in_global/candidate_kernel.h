// Shares results between cores in global variables.
#pragma once
#include "honest.h"

float sums[48];

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        sums[AscendC::GetBlockIdx()] += 1.0f;
        HonestKernel::Compute(y, x, offset, count);
    }
};
