// Runs of one kernel that must agree: they differ in where global memory lies and in what memories hold before they
// are written. Addresses in the trace are canonical, so that no price depends on the turn.
#pragma once
#include <cstdint>

namespace asim {

struct Turn {
    uint64_t shift_bytes = 0;   // added to every address of global memory
    uint8_t poison = 0xff;      // a NaN in every floating-point type
};

const Turn &turn();

// Chooses the turn of this process; 0 when it is never called. Before anything is allocated.
void begin_turn(uint32_t number);

}  // namespace asim
