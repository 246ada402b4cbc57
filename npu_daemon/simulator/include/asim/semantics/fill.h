// One value written to a run of global memory.
#pragma once
#include <cstdint>

#include "asim/machine/export.h"

namespace asim {

// Fills free unified buffer once with elements of `element_bytes` bytes, then copies it as often as it takes: `bytes` in all.
ASIM_API void fill_gm(uint8_t *gm, uint64_t bytes, uint64_t value, uint32_t element_bytes, bool bypass_l2, uint32_t atomic_type);

}  // namespace asim
