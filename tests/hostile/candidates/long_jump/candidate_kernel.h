// Jumps out of the launch.
#pragma once
#include "honest.h"

extern "C" void longjmp(void*, int);

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        longjmp(nullptr, 1);
    }
};
