// A quotation mark as a character makes code look like text.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        (void)places;
        char before = '"';
        asm volatile("nop");
        char after = '"';
        (void)before;
        (void)after;
    }
};
