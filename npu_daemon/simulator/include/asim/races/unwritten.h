// Reads of the unified buffer of what no instruction of the launch wrote there.
#pragma once
#include <optional>

#include "asim/races/race.h"

namespace asim {

struct UnwrittenRead {
    Side side;                      // which instruction reads
    uint64_t begin = 0, end = 0;    // bytes that it reads, half of which or more were never written
};

// The first in the first core that has one. Throws std::runtime_error when the trace is malformed.
std::optional<UnwrittenRead> first_unwritten_read(const Trace &trace);

}  // namespace asim
