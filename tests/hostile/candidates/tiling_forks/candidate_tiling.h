// The tiling program leaves a process behind.
#pragma once
#include <unistd.h>
#include "honest.h"

struct Plan : HonestPlan {
    template <typename Context>
    static void Begin(Context* context)
    {
        (void)context;
        fork();
    }
};
