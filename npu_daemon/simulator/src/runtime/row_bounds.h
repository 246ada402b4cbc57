// Rows that library calls work on: no more elements than the unified buffer has bytes; and temporary buffers that are too small.
#pragma once
#include <cstdint>

#include "asim/machine/block.h"
#include "asim/machine/fault.h"
#include "asim/semantics/math.h"

namespace asim {

inline void check_rows(const char *call, uint32_t rows, uint32_t columns) {
    if (uint64_t{rows} * columns <= block().ub_bytes && rows <= block().ub_bytes && columns <= block().ub_bytes) return;
    fault(FaultKind::RuntimeFault, call, "%u rows of %u elements are more than the unified buffer holds", rows, columns);
}

[[noreturn]] inline void too_little(const char *call, Scratch scratch, uint64_t needed_bytes) {
    fault(FaultKind::RuntimeFault, call, "the temporary buffer has %u bytes, but the call needs at least %llu", scratch.bytes,
          static_cast<unsigned long long>(needed_bytes));
}

}  // namespace asim
