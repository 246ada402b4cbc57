// The tiling program writes a terabyte to the channel of its answer.
#pragma once
#include <cstdio>
#include "honest.h"

struct Plan : HonestPlan {
    template <typename Context>
    static void Begin(Context* context)
    {
        (void)context;
        for (;;) {
            std::puts("{\"decision\": {}}");
        }
    }
};
