// Changes the input, from which the expected output might be computed.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        input.SetGlobalBuffer((__gm__ float*)places.x, places.coreLength);
    }
    __aicore__ inline void CopyOut(
        const AscendC::GlobalTensor<float>& yGm, const AscendC::LocalTensor<float>& y, uint32_t offset, uint32_t count)
    {
        AscendC::DataCopy(input[offset], y, count);
        AscendC::DataCopy(yGm[offset], y, count);
    }

private:
    AscendC::GlobalTensor<float> input;
};
