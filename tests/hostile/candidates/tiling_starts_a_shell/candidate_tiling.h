// The tiling program starts a shell.
#pragma once
#include <cstdlib>
#include "honest.h"

struct Plan : HonestPlan {
    template <typename Context>
    static void Begin(Context* context)
    {
        (void)context;
        std::system("id");
    }
};
