// Which bytes of the outputs the trace says were written.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "asim/timing/trace_reader.h"

namespace asim {

struct OutputRange {
    std::string name;
    uint64_t address = 0;
    uint64_t bytes = 0;
};

// Bytes of each output that no instruction of the trace writes: an output that nobody wrote was not computed here.
std::vector<uint64_t> unwritten_bytes(const Trace &trace, const std::vector<OutputRange> &outputs);

}  // namespace asim
