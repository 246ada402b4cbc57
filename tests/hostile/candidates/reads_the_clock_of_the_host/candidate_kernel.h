// Reads the clock by an instruction of the host.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        *(__gm__ float*)places.y = static_cast<float>(__builtin_ia32_rdtsc() & 1);
    }
};
