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

// Bytes of each tensor that no instruction of the trace touches: writes count for outputs, reads for inputs.
// What nobody read or wrote was not computed by this kernel's instructions.
std::vector<uint64_t> untouched_bytes(const Trace &trace, const std::vector<TensorRange> &tensors);

}  // namespace asim
