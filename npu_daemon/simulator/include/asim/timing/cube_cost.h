// What instructions of a cube core's own pipes cost: matrix unit, L1 to L0 copies, Fixpipe within the core.
#pragma once
#include "asim/timing/chip.h"
#include "asim/timing/trace_reader.h"

namespace asim {

// How long an instruction keeps its pipe from starting the next one, and how much later its results can be used.
struct InstructionTime {
    double busy_cycles = 0;
    double latency_cycles = 0;
};

InstructionTime cube_time(const Entry &entry, const Chip &chip);

// How long a copy from L0C takes that follows the matrix unit by the unit flag; 0 for all else.
double unit_flag_cycles(const Record &record, const Chip &chip);

}  // namespace asim
