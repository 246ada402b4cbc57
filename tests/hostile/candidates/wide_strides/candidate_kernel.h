// Distances between bursts that wrap around to where the copy began.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        asim::CopyShape shape;
        shape.burst_count = 3;
        shape.burst_bytes = 32;
        shape.gm_stride_bytes = 1ull << 63;
        shape.ub_stride_bytes = 1ull << 63;
        AscendC::GlobalTensor<float> from;
        asim::copy_gm_to_ub(asim::CopyCall::DataCopy, y.bytes(), from.bytes(), shape, {});
    }
};
