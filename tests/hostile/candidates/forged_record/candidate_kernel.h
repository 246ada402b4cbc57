// Emits records of instructions that never ran.
#pragma once
#include "honest.h"

namespace asim {
void record_instruction();
}

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        asim::record_instruction();
    }
};
