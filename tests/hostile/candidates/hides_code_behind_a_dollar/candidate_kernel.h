// What looks like a raw string is a word that ends in R, and a short string.
#pragma once
#include "honest.h"

#define $R

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        (void)places;
        const char* before = $R"x(";
        asm volatile("nop");
        const char* after = ")x";
        (void)before;
        (void)after;
    }
};
