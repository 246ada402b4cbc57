// Gives a function a temporary buffer that holds its source, too.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        GetTPipePtr()->InitBuffer(results, places.tileLength * sizeof(float));
        GetTPipePtr()->InitBuffer(work, 16384);
    }
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        AscendC::LocalTensor<float> source = work.Get<float>()[count * 5];
        AscendC::Adds(source, x, 0.0f, count);
        AscendC::Lgamma(results.Get<float>(), source, work.Get<uint8_t>(), count);
        HonestKernel::Compute(y, x, offset, count);
    }

private:
    AscendC::TBuf<AscendC::TPosition::VECCALC> results, work;
};
