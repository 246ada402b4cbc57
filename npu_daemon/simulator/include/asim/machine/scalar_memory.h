// Loads and stores of the scalar unit that kernels name: elements of tensors. Bits of 1, 2, 4 or 8 bytes.
#pragma once
#include <cstdint>

#include "asim/machine/export.h"

namespace asim {

ASIM_API uint64_t load_ub(const void *element, uint32_t bytes);
ASIM_API void store_ub(void *element, uint64_t bits, uint32_t bytes);
ASIM_API uint64_t load_gm(const void *element, uint32_t bytes);
ASIM_API void store_gm(void *element, uint64_t bits, uint32_t bytes);
// Past the data cache.
ASIM_API uint64_t load_uncached(const void *element, uint32_t bytes);
ASIM_API void store_uncached(void *element, uint64_t bits, uint32_t bytes);

}  // namespace asim
