// A workspace of a petabyte.
#pragma once
#include "honest.h"

struct Plan : HonestPlan {
    static size_t WorkspaceBytes()
    {
        return size_t(1) << 50;
    }
};
