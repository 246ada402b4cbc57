// A build flag names the inside of the simulator.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        (void)places;
        HARMLESS::begin_turn(1);
    }
};
