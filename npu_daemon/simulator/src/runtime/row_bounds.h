// Rows that library calls work on: no more elements than the unified buffer has bytes.
#pragma once
#include <cstdint>

#include "asim/machine/block.h"
#include "asim/machine/fault.h"

namespace asim {

inline void check_rows(const char *call, uint32_t rows, uint32_t columns) {
    if (uint64_t{rows} * columns <= block().ub_bytes && rows <= block().ub_bytes && columns <= block().ub_bytes) return;
    fault(FaultKind::RuntimeFault, call, "%u rows of %u elements are more than the unified buffer holds", rows, columns);
}

}  // namespace asim
