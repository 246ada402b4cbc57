// Accumulation into global memory by a copy while an atomic mode is set.
#pragma once
#include <cstdint>

namespace asim {

// The element types that atomic copies accumulate in.
enum class AtomicType : uint8_t { F32, F16, Bf16, I32, I16, I8 };

// Combines `bytes` bytes of `source` into `destination` with the block's atomic mode.
void accumulate(uint8_t *destination, const uint8_t *source, uint32_t bytes, uint32_t dtype_code);

}  // namespace asim
