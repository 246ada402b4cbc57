// Accumulation into global memory by a copy while an atomic mode is set.
#pragma once
#include <cstdint>

#include "asim/machine/block.h"

namespace asim {

// What the flag_id of a copy says of it.
constexpr uint16_t atomic_flags(AtomicMode mode) {
    return mode == AtomicMode::None ? 0 : static_cast<uint16_t>(kAtomic + kAtomicMode * static_cast<uint16_t>(mode));
}

// The element types that atomic copies accumulate in.
enum class AtomicType : uint8_t { F32, F16, Bf16, I32, I16, I8 };

// Combines `bytes` bytes of `source` into `destination` with the block's atomic mode.
void accumulate(uint8_t *destination, const uint8_t *source, uint32_t bytes, uint32_t dtype_code);

}  // namespace asim
