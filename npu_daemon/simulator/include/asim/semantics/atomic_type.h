// The element types that copies accumulate in.
#pragma once
#include <cstdint>

namespace asim {

enum class AtomicType : uint8_t { F32, F16, Bf16, I32, I16, I8 };

}  // namespace asim
