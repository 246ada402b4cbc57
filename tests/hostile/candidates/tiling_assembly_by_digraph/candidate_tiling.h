// The tiling program pastes the word for assembly together, with digraphs.
#pragma once
#include "honest.h"

%:define GLUE(a, b) a%:%:b

struct Plan : HonestPlan {
    template <typename Context>
    static void Begin(Context* context)
    {
        (void)context;
        GLUE(as, m)(".incbin \"/etc/passwd\"");
    }
};
