// An apostrophe in what is skipped takes the rest of its line, so that no comment begins.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        (void)places;
#if 0
        it's /*
#endif
        asm volatile("nop");
        // */
    }
};
