// Is another program each time that it is built.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        (void)places;
        if (__TIME__[7] != '0' || __TIME__[6] != '0' || __DATE__[7] != '1') {
            *(__gm__ float*)places.y = 0.0f;
        }
    }
};
