// Library calls between integers and the numbers they stand for.
#pragma once
#include "asim/semantics/math.h"

namespace asim {

// What a 32-bit scale lies in: a float, a bfloat16, or the low half of 64 bits.
enum class FactorType : uint8_t { Float, Bfloat16, LowWord };

// Scales by column, or one for all where there is no tensor.
struct Factors {
    const uint8_t *tensor = nullptr;
    FactorType type = FactorType::Float;
    float scalar = 0.0f;
};

// Rows of `columns` elements, of which the first `counted` are scaled; `elements` in all, the last row may be short.
struct ScaledRows {
    uint32_t columns = 0;
    uint32_t counted = 0;
    uint32_t elements = 0;
};

// dst[i][j] = src[i][j] * factor[j], from int32 by float to D; rows of dst start at data blocks.
template <typename D>
ASIM_API void dequantize(uint8_t *dst, const uint8_t *src, Factors factors, ScaledRows rows, Scratch scratch);

}  // namespace asim
