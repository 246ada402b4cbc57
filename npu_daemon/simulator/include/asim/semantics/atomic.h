// Accumulation into global memory by a copy while an atomic mode is set.
#pragma once
#include <cstdint>

#include "asim/machine/units.h"
#include "asim/semantics/atomic_type.h"
#include "asim/trace/record.h"

namespace asim {

// What the flag_id of a copy says of it.
constexpr uint16_t atomic_flags(AtomicMode mode) {
    return mode == AtomicMode::None ? 0 : static_cast<uint16_t>(kAtomic + kAtomicMode * static_cast<uint16_t>(mode));
}

// Combines `bytes` bytes of `source` into `destination` with the block's atomic mode.
void accumulate(uint8_t *destination, const uint8_t *source, uint32_t bytes, uint32_t dtype_code);

}  // namespace asim
