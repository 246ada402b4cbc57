// A forbidden attribute stands behind a harmless one.
#pragma once
#include "honest.h"

__attribute__((unused, optimize("O3"))) static void helper()
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
