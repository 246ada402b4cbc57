// Pays for 16 columns of a softmax and has all of them computed.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        GetTPipePtr()->InitBuffer(shares, places.tileLength * sizeof(float));
        GetTPipePtr()->InitBuffer(work, 8192);
    }
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        const AscendC::SoftMaxShapeInfo shape{1, 16, 1, count};
        AscendC::SoftMax<float>(shares.Get<float>(), x, work.Get<uint8_t>(), SoftMaxTiling{}, shape);
        HonestKernel::Compute(y, x, offset, count);
    }

private:
    AscendC::TBuf<AscendC::TPosition::VECCALC> shares, work;
};
