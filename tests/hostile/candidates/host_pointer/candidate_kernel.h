// Writes through an address of the host's stack.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        volatile int32_t own = 0;
        volatile uint64_t far = (uint64_t)&own + 400000000;
        *(volatile int32_t*)far = 1;
    }
};
