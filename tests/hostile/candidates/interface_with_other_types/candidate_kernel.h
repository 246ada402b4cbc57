// Calls a function of the interface as if it took other arguments.
#pragma once
#include "honest.h"

namespace other {
void barrier(uint64_t, uint64_t, uint64_t) __asm__("_ZN4asim12pipe_barrierENS_4PipeE");
}

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        other::barrier(7, 7, 7);
    }
};
