// The tiling program reads the expected outputs.
#pragma once
#include <cstdio>
#include "honest.h"

struct Plan : HonestPlan {
    template <typename Context>
    static void Begin(Context* context)
    {
        (void)context;
        std::fopen("/etc/passwd", "r");
    }
};
