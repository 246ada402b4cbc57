// Writes through an address of the host's stack.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        volatile int32_t own = 0;
        volatile int32_t* far = &own + 100000000;
        *far = 1;
    }
};
