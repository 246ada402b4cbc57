// Blanks between the brackets of an attribute.
#pragma once
#include "honest.h"

__attribute__( (optimize("O3")) ) static void helper()
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
