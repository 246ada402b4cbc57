// Leaves a process behind.
#pragma once
#include "honest.h"

extern "C" int fork();

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        fork();
    }
};
