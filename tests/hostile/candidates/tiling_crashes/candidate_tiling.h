// The tiling program writes to address zero.
#pragma once
#include "honest.h"

struct Plan : HonestPlan {
    template <typename Context>
    static void Begin(Context* context)
    {
        (void)context;
        *(volatile int*)nullptr = 1;
    }
};
