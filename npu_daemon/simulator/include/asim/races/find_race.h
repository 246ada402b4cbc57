// Reads a trace once and looks for the first pair of accesses that races.
#pragma once
#include <optional>

#include "asim/races/race.h"

namespace asim {

// Throws std::runtime_error when the trace is malformed.
std::optional<Race> find_race(const Trace &trace, const SharedMemory &memory, bool auto_sync);

}  // namespace asim
