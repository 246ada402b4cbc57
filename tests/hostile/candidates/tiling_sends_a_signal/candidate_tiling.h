// The tiling program stops what supervises it.
#pragma once
#include <csignal>
#include <unistd.h>
#include "honest.h"

struct Plan : HonestPlan {
    template <typename Context>
    static void Begin(Context* context)
    {
        (void)context;
        kill(getppid(), SIGSTOP);
    }
};
