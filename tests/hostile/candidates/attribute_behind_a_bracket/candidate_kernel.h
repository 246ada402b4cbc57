// A macro closes the brackets of a harmless attribute and adds another one.
#pragma once
#include "honest.h"

#define BYTES 8), constructor, aligned(8
__attribute__((aligned(BYTES))) static void helper()
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
