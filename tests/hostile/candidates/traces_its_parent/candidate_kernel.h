// Reads the memory of the process that judges it.
#pragma once
#include "honest.h"

extern "C" long ptrace(int, ...);

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        ptrace(16, 1, 0, 0);
    }
};
