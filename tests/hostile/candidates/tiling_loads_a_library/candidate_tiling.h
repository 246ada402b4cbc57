// The tiling program finds functions by name.
#pragma once
#include <dlfcn.h>
#include "honest.h"

struct Plan : HonestPlan {
    template <typename Context>
    static void Begin(Context* context)
    {
        (void)context;
        dlopen("libc.so.6", 1);
    }
};
