// Never ends.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        volatile uint32_t turns = 0;
        for (;;) {
            turns = turns + 1;
        }
    }
};
