// The matrix unit: c (L0C, nZ fractals of 16 x 16) = a (L0A) * b (L0B) + what c starts from.
#pragma once
#include <cstdint>
#include <optional>

#include "asim/machine/block.h"

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
    bool wide_k = false;        // float: k is padded to 16 elements instead of 8
    bool unit_flag = false;
};

// `bias` is a row of n results in the bias table, or null. On a vector core nothing happens, as on the device.
void mmad(uint8_t *c, const uint8_t *a, const uint8_t *b, const uint8_t *bias, const MmadShape &shape);

// The trace record alone, for library code that multiplies at another level; addresses are offsets in L0C, L0A and L0B.
void emit_mmad(const MmadShape &shape, uint64_t c, uint64_t a, uint64_t b, std::optional<uint64_t> bias);

}  // namespace asim
