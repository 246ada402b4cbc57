// Gets at the host's functions by their header.
#pragma once
#include "honest.h"

#include <unistd.h>

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        (void)places;
        own = getpid();
    }

private:
    int own = 0;
};
