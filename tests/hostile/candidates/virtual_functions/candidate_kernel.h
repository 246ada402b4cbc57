// Calls what compilers of devices do not take: virtual functions.
#pragma once
#include "honest.h"

struct Step {
    virtual __aicore__ void Run(const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t count) const = 0;
};
struct Doubling final : Step {
    __aicore__ void Run(const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t count) const override
    {
        AscendC::Muls(y, x, 2.0f, count);
    }
};
struct AddingOne final : Step {
    __aicore__ void Run(const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t count) const override
    {
        AscendC::Adds(y, x, 1.0f, count);
    }
};

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        const Doubling doubling;
        const AddingOne adding;
        const Step* steps[] = {&doubling, &adding};
        for (uint32_t i = 0; i < 2; ++i) {
            steps[(count + i) % 2]->Run(y, i == 0 ? x : y, count);
        }
    }
};
