// Keeps a result in the temporary buffer of a softmax, which is the larger for it.
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
        AscendC::LocalTensor<float> kept = work.Get<float>()[KEPT];
        HonestKernel::Compute(kept, x, offset, count);
        const AscendC::SoftMaxShapeInfo shape{count / COLUMNS, COLUMNS, count / COLUMNS, COLUMNS};
        AscendC::SoftMax<float>(shares.Get<float>(), x, work.Get<uint8_t>(), SoftMaxTiling{}, shape);
        AscendC::Adds(y, kept, 0.0f, count);
    }

private:
    static constexpr uint32_t COLUMNS = 32;
    static constexpr uint32_t KEPT = 640; // behind what eight rows need, within what sixteen do
    AscendC::TBuf<AscendC::TPosition::VECCALC> shares, work;
};
