// Names of its own that the simulator uses too: macros, a namespace, an expression of tensors, and a header behind all of them.
#pragma once
#include "honest.h"

#define count elements
#define key tiling_key
#define launch(kernel) kernel
#define arguments places
#include "lib/matmul_intf.h"

namespace launches {
inline void launch_all(uint32_t) {}
}

struct Doubled {
    using TensorExpression = void;
    const AscendC::LocalTensor<float>& x;
    int32_t elements;
    __aicore__ inline void store(const AscendC::LocalTensor<float>& y) const
    {
        AscendC::Muls(y, x, 2.0f, elements);
    }
};

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& arguments)
    {
        launches::launch_all(arguments.coreLength);
    }
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        (void)offset;
        AscendC::LocalTensor<float> doubled = y;
        doubled = Doubled{x, static_cast<int32_t>(count)};
        AscendC::Adds(y, y, 1.0f, count);
    }
};
