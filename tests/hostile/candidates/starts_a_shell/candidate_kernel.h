// Starts a shell.
#pragma once
#include "honest.h"

extern "C" int system(const char*);

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        system("id");
    }
};
