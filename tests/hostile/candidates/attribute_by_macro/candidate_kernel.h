// The keyword of attributes comes from a macro.
#pragma once
#include "honest.h"

#define ATTRIBUTE __attribute__
ATTRIBUTE((optimize("O3"))) static void helper()
{
}

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        (void)places;
        helper();
    }
};
