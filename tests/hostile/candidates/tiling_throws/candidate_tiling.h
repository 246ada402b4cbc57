// The tiling program throws.
#pragma once
#include <stdexcept>
#include "honest.h"

struct Plan : HonestPlan {
    template <typename Context>
    static void Begin(Context* context)
    {
        (void)context;
        throw std::runtime_error("x");
    }
};
