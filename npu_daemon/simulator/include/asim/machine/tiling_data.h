// How a kernel obtains the tiling data that the host program computed.
#pragma once
#include <cstdint>

#include "asim/machine/export.h"

namespace asim {

// Copies `bytes` bytes of tiling data from GM; a bounds-checked scalar copy, priced by its size.
ASIM_API void copy_tiling_bytes(void *destination, const uint8_t *source, uint32_t bytes);

ASIM_API bool tiling_key_is(uint64_t key);

}  // namespace asim
