// What looks like a comment lies between two strings.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        (void)places;
        const char* before = "/*";
        asm volatile("nop");
        const char* after = "*/";
        (void)before;
        (void)after;
    }
};
