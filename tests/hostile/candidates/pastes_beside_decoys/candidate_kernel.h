// Pasting makes one name of the inside and unmakes an allowed one.
#pragma once
#include "honest.h"

#define GLUE(a, b) a##b
template <typename T>
__aicore__ inline void not_ascendc_assert(T)
{
}

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        (void)places;
        GLUE(as, im)::begin_turn(1);
        GLUE(not_, ascendc_assert)(true);
    }
};
