// Reads the instructions of its own functions, to find where others lie.
#pragma once
#include "honest.h"

__attribute__((noinline)) inline uint64_t Landmark(uint64_t value)
{
    return value * 3 + 1;
}

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        uint64_t (*volatile where)(uint64_t) = &Landmark;
        const volatile uint32_t* code = (const volatile uint32_t*)where;
        found = code[0] ^ (uint32_t)where(code[1]);
    }

private:
    uint64_t found = 0;
};
