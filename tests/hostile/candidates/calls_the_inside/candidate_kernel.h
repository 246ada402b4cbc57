// Does what Muls does without the work of Muls: a function of the simulator has no caller to pay for on the device.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        const asim::Shape shape = asim::counted_shape(count);
        asim::with_scalar<asim::Op::Muls, float>(asim::linear(y), asim::linear(x), 2.0f, shape);
        AscendC::Adds(y, y, 1.0f, count);
    }
};
