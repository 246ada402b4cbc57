// Four billion blocks.
#pragma once
#include "honest.h"

struct Plan : HonestPlan {
    static uint32_t Cores()
    {
        return 0xffffffffu;
    }
};
