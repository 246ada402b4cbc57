// No block at all.
#pragma once
#include "honest.h"

struct Plan : HonestPlan {
    static uint32_t calls;
    static uint32_t Cores()
    {
        return calls++ == 0 ? CORES : 0;
    }
};
inline uint32_t Plan::calls = 0;
