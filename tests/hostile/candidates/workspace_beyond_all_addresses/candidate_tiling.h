// Asks for a workspace whose size, rounded up, is 0.
#pragma once
#include "honest.h"

struct Plan : HonestPlan {
    static size_t WorkspaceBytes()
    {
        return ~size_t{511};
    }
};
