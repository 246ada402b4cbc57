// The same in an operator that a function of Ascend C calls, and without a place of its own.
#pragma once
#include "honest.h"

struct Value {
    uint64_t value;
    __attribute__((nodebug, always_inline)) uint64_t operator+(uint64_t more) const
    {
        asim::set_vector_mask(value, more);
        return value + more;
    }
};

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        (void)AscendC::AlignUp(Value{places.coreLength}, 32ull);
    }
};
