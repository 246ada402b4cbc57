// Copies from L0C to global memory or L1, with what Fixpipe does on the way: layout, element type, ReLU.
#pragma once
#include <cstdint>

#include "asim/machine/export.h"
#include "asim/machine/units.h"

namespace asim {

enum class ResultType : uint8_t { F32, F16, Bf16, I32, I8, U8 };

enum class Quantization : uint8_t { None, ToF16, ToBf16, ScaledF16, ScaledB8 };

// Source: matrices of m x n results of four bytes in fractals of 16 x 16, columns of fractals `src_stride` rows apart.
struct FixpipeShape {
    uint32_t m = 0;
    uint32_t n = 0;
    uint32_t matrices = 1;
    uint64_t src_stride_rows = 0;
    uint64_t src_matrix_stride_bytes = 0;
    uint64_t dst_stride_bytes = 0;          // between rows, or between columns of fractals where these are kept
    uint64_t dst_matrix_stride_bytes = 0;
    Flag to_rows = true;                    // ND; else fractals stay
    Flag split_channels = false;            // fractals of floats with 8 columns
    Flag integers = false;                  // source elements: int32 instead of float
    ResultType result = ResultType::F32;
    Quantization quantization = Quantization::None;
    uint64_t scale = 0;                     // as the deqScalar argument has it
    const uint8_t *scales = nullptr;        // one of 8 bytes for each column instead
    Flag relu = false;
    Flag unit_flag = false;
    Flag bypass_l2 = false;
    Flag by_registers = false;              // matrices, their strides and scales are those of the registers
    Flag by_column = false;                 // and the scales, then
    uint32_t atomic_type = 0;
};

// On a vector core nothing happens, as on the device.
ASIM_API void fixpipe_to_gm(uint8_t *gm, const uint8_t *l0c, FixpipeShape shape);
ASIM_API void fixpipe_to_l1(uint8_t *l1, const uint8_t *l0c, FixpipeShape shape);

}  // namespace asim
