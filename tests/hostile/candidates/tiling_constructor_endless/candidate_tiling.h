// The host library never finishes loading.
#pragma once
#include "honest.h"

struct Early {
    Early()
    {
        volatile int turns = 0;
        for (;;) {
            turns = turns + 1;
        }
    }
};
static Early early;

using Plan = HonestPlan;
