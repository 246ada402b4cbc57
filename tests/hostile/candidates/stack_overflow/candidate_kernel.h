// Recursion without an end.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        volatile int first = 1;
        first = Deeper(&first);
    }

    __aicore__ int Deeper(volatile int* from)
    {
        volatile int here[256] = {};
        here[*from % 256] = *from + 1;
        return Deeper(&here[*from % 256]) + here[0];
    }
};
