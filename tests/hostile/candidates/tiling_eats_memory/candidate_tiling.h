// The tiling program wants all the memory of the host.
#pragma once
#include "honest.h"

struct Plan : HonestPlan {
    template <typename Context>
    static void Begin(Context* context)
    {
        (void)context;
        for (;;) {
            char* block = new char[1 << 26];
            for (int at = 0; at < 1 << 26; at += 4096) {
                block[at] = 1;
            }
        }
    }
};
