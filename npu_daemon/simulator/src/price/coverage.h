// Which bytes of the tensors the trace says were read and written.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "asim/timing/trace_reader.h"

namespace asim {

struct TensorRange {
    std::string name;
    uint64_t address = 0;
    uint64_t bytes = 0;
    bool output = false;
};

// What the instructions of a trace did with a tensor: writes count for outputs, reads for inputs.
struct TensorCoverage {
    uint64_t missing_bytes = 0;  // touched by none: not computed, or not taken into account, by this kernel
    uint64_t beyond_bytes = 0;   // how far behind its end copies reach, if further than aclrtMalloc promises
};

std::vector<TensorCoverage> tensor_coverage(const Trace &trace, const std::vector<TensorRange> &tensors);

}  // namespace asim
