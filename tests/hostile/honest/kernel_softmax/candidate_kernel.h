// Softmax of whole rows, of rows with padding, and a function, with what is kept beside their temporary buffers.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        GetTPipePtr()->InitBuffer(shares, places.tileLength * sizeof(float));
        GetTPipePtr()->InitBuffer(results, places.tileLength * sizeof(float));
        GetTPipePtr()->InitBuffer(work, 16384);
    }
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        AscendC::LocalTensor<float> kept = results.Get<float>(), parts = shares.Get<float>();
        AscendC::LocalTensor<uint8_t> buffer = work.Get<uint8_t>();
        HonestKernel::Compute(kept, x, offset, count);
        AscendC::SoftMax<float>(parts, x, buffer, SoftMaxTiling{}, {1, count, 1, count});
        AscendC::SoftMax<float>(parts, x, buffer, SoftMaxTiling{}, {count / COLUMNS, COLUMNS, count / COLUMNS, COLUMNS});
        AscendC::SoftMax<float>(parts, x, buffer, SoftMaxTiling{}, {count / COLUMNS, COLUMNS, count / COLUMNS, COLUMNS - 2});
        AscendC::Lgamma(parts, x, buffer, count);
        AscendC::Adds(y, kept, 0.0f, count);
    }

private:
    static constexpr uint32_t COLUMNS = 32;
    AscendC::TBuf<AscendC::TPosition::VECCALC> shares, results, work;
};
