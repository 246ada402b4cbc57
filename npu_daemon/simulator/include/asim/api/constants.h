// Sizes and counts that kernels take from the headers of the basic API.
#pragma once
#include <cstdint>

#include "asim/machine/units.h"

namespace AscendC {

constexpr int32_t ONE_BLK_FLOAT_NUM = 8;
constexpr int32_t ONE_BLK_HALF_NUM = 16;
constexpr int32_t BRCB_BROADCAST_NUMBER = 8;
constexpr int32_t B16_BYTE_SIZE = 2;
constexpr int32_t B32_BYTE_SIZE = 4;
constexpr int32_t B16_DATA_NUM_PER_BLOCK = asim::kUbBlockBytes / B16_BYTE_SIZE;
constexpr int32_t B32_DATA_NUM_PER_BLOCK = asim::kUbBlockBytes / B32_BYTE_SIZE;
constexpr int32_t B16_DATA_NUM_PER_REPEAT = asim::kRepeatBytes / B16_BYTE_SIZE;
constexpr int32_t B32_DATA_NUM_PER_REPEAT = asim::kRepeatBytes / B32_BYTE_SIZE;
constexpr uint32_t ONE_REPEAT_HALF_SIZE = asim::kRepeatBytes / B16_BYTE_SIZE;
constexpr uint32_t ONE_REPEAT_FLOAT_SIZE = asim::kRepeatBytes / B32_BYTE_SIZE;
constexpr uint8_t HALF_DEFAULT_REPEAT_STRIDE = 4;   // of half operands beside floats
constexpr int32_t ONE_BYTE_BIT_SIZE = 8;
constexpr uint64_t FULL_MASK = ~0ull;
constexpr int32_t K_MAX_DIM = 8;

}  // namespace AscendC
