// A macro makes a harmless attribute another one.
#pragma once
#include "honest.h"

#define unused constructor
[[gnu::unused]] static void helper()
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
