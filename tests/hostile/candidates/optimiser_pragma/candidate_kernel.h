// Changes how the file is compiled.
#pragma once
#include "honest.h"

#pragma GCC optimize("O3")

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {

    }
};
