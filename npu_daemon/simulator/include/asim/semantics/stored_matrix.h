// How the matrices of a multiplication lie in memory.
#pragma once
#define ASIM_READ_FIRST     // an error behind text of kernels, whose macros would apply here (kernel_ir/headers.py)
#include <cstdint>

#include "asim/machine/units.h"
#include "asim/trace/record.h"

namespace asim {

enum class NumberType : uint8_t { F32, F16, Bf16, I32, I8, I4 };

// Rows one after another; rows padded to 32 bytes; or fractals of 16 rows by 32 bytes, columns of fractals one after
// another (results of 32 bits: 16 by 16 elements).
enum class MatrixLayout : uint8_t { Rows, PaddedRows, Fractals };

// A matrix as it is stored. `transposed` says that the one meant has rows and columns exchanged.
struct StoredMatrix {
    uint8_t *base = nullptr;
    Space space = Space::Gm;
    NumberType type = NumberType::F16;
    MatrixLayout layout = MatrixLayout::Rows;
    Flag transposed = false;
    Flag bypass_l2 = false;
    uint8_t fractal_columns = 16;       // from here on the machine fills in
    uint64_t rows = 0;
    uint64_t columns = 0;
};

// What happens to sums on their way to a result: a factor and an offset for 8 bits, for all columns or for each.
struct Requantisation {
    const uint64_t *vector = nullptr;   // in global memory, one parameter for each column of the result
    uint64_t scalar = 0;
    Flag enabled = false;
};

struct GemmExtents {
    uint32_t m;
    uint32_t n;
    uint32_t k;
};

}  // namespace asim
