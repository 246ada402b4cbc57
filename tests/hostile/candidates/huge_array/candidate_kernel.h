// A constant array of 40 GB.
#pragma once
#include "honest.h"

const char HUGE_TABLE[40ull << 30] = {1};

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        (void)HUGE_TABLE[places.coreLength];
    }
};
