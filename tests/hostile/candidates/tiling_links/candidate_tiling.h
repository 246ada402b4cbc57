// The tiling program makes a link to a file of the host.
#pragma once
#include <unistd.h>
#include "honest.h"

struct Plan : HonestPlan {
    template <typename Context>
    static void Begin(Context* context)
    {
        (void)context;
        symlink("/etc/passwd", "output-0-0.bin");
    }
};
