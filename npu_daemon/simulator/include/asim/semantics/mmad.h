// The matrix unit: c (L0C, nZ fractals of 16 x 16) = a (L0A) * b (L0B) + what c starts from.
#pragma once
#include <cstdint>

#include "asim/machine/export.h"
#include "asim/machine/units.h"

namespace asim {

enum class MatrixType : uint8_t { F16, Bf16, F32, I8, U8, I4 };

constexpr uint32_t element_bytes(MatrixType type) {
    return type == MatrixType::F32 ? 4 : type == MatrixType::F16 || type == MatrixType::Bf16 ? 2 : 1;
}

// Where c starts from.
enum class MatrixStart : uint8_t { Zero, Accumulate, Bias };

struct MmadShape {
    uint32_t m = 0;
    uint32_t n = 0;
    uint32_t k = 0;
    MatrixType a = MatrixType::F16;
    MatrixType b = MatrixType::F16;
    MatrixStart start = MatrixStart::Zero;
    Flag wide_k = false;        // float: k is padded to 16 elements instead of 8
    Flag unit_flag = false;
};

// `bias` is a row of n results in the bias table, null where the table starts. On a vector core nothing happens, as on the device.
ASIM_API void mmad(uint8_t *c, const uint8_t *a, const uint8_t *b, const uint8_t *bias, MmadShape shape);

}  // namespace asim
