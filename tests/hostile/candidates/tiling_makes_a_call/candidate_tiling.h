// The tiling program asks the kernel of the host directly.
#pragma once
#include <unistd.h>
#include "honest.h"

struct Plan : HonestPlan {
    template <typename Context>
    static void Begin(Context* context)
    {
        (void)context;
        syscall(57);
    }
};
