// Asks for work that no instruction is charged for, by declaring a function of the simulator itself.
#pragma once
#include "honest.h"

namespace asim {
struct Block;
void run_as(Block& other, const void* work);
Block* launch_blocks();
}

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        asim::run_as(*asim::launch_blocks(), nullptr);
    }
};
