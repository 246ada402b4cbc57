// Blanks between a backslash and the end of its line: the comment goes on, and its mark opens nothing.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        (void)places;
        // and so on \ 
        /*
        asm volatile("nop");
        // */
    }
};
