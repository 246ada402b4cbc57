// The tiling program never ends.
#pragma once
#include "honest.h"

struct Plan : HonestPlan {
    template <typename Context>
    static void Begin(Context* context)
    {
        (void)context;
        volatile int turns = 0;
        for (;;) {
            turns = turns + 1;
        }
    }
};
