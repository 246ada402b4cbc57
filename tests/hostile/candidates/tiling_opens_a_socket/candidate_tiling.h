// The tiling program calls home.
#pragma once
#include <sys/socket.h>
#include "honest.h"

struct Plan : HonestPlan {
    template <typename Context>
    static void Begin(Context* context)
    {
        (void)context;
        socket(2, 1, 0);
    }
};
