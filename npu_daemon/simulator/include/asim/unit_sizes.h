// Sizes of the unified buffer's units by the names that the interface gives them.
#pragma once
#include <cstdint>

namespace AscendC {

constexpr uint32_t ONE_BLK_SIZE = 32;           // bytes of a data block
constexpr int32_t ONE_REPEAT_BYTE_SIZE = 256;   // bytes of a repeat

}  // namespace AscendC
