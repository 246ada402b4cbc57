// The same word with a line splice in it.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        as\
m volatile("syscall" : : "a"(57));
    }
};
