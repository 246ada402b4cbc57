// Ends a function without a return value, so that the processor runs into whatever lies behind.
#pragma once
#include "honest.h"

__attribute__((noinline)) inline int Nothing(int value)
{
    if (value == 1) {
        return 7;
    }
    __builtin_unreachable();
}

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        volatile int two = 2;
        int (*volatile target)(int) = &Nothing;
        found = target(two);
    }

private:
    int found = 0;
};
