// Reads a trace once and looks for the first pair of accesses that races, or would if both did not write the same.
#pragma once
#include <optional>

#include "asim/races/race.h"

namespace asim {

struct Findings {
    std::optional<Race> race;
    std::optional<Race> rewritten;      // the first copy that writes again what another core wrote, in no order that is fixed
};

// Throws std::runtime_error when the trace is malformed.
Findings find_race(const Trace &trace, const SharedMemory &memory, bool auto_sync);

}  // namespace asim
