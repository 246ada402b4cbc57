// Includes a header of the simulator by a name that no search finds, with macros that put other calls into its functions.
#pragma once
#include "honest.h"

#define served_vector_cores() \
    muls(const LocalTensor<float>& y, const LocalTensor<float>& x, float scalar, const asim::Shape& shape)
#define serves_vector_cores() block_count()
#define wait_for_group_end() with_scalar<asim::Op::Muls, float>(asim::linear(y), asim::linear(x), scalar, shape)
#define PATH(name) <lib/name##mul_intf.h>
#include PATH(mat)

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        AscendC::muls(y, x, 2.0f, asim::counted_shape(count));
        AscendC::Adds(y, y, 1.0f, count);
    }
};
