// Writes to address zero.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        *(volatile int32_t*)nullptr = places.coreLength;
    }
};
