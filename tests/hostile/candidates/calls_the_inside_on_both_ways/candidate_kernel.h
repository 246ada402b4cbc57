// The same on two ways of which the optimiser could make one, whose place is neither.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        const asim::Shape shape = asim::counted_shape(count);
        if (offset % 1024 == 0) {
            asim::with_scalar<asim::Op::Muls, float>(asim::linear(y), asim::linear(x), 2.0f, shape);
        } else {
            asim::with_scalar<asim::Op::Muls, float>(asim::linear(y), asim::linear(x), 1.0f * 2.0f, shape);
        }
        AscendC::Adds(y, y, 1.0f, count);
    }
};
