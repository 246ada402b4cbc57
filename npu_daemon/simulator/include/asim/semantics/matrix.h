// Matrices as the Matmul object finds them in memory: element types, layouts, and blocks read and written as numbers.
#pragma once
#include <cstddef>
#include <cstdint>

#include "asim/machine/block.h"
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
    bool transposed = false;
    bool bypass_l2 = false;
    uint8_t fractal_columns = 16;
    uint64_t rows = 0;
    uint64_t columns = 0;
};

// Part of a matrix, in elements of the matrix as it is stored.
struct MatrixPart {
    uint32_t row = 0;
    uint32_t column = 0;
    uint32_t rows = 0;
    uint32_t columns = 0;
};

constexpr uint32_t kFractalRows = 16;

uint32_t type_bits(NumberType type);
// Bytes from the start of the matrix to an element.
uint64_t offset_of(const StoredMatrix &matrix, uint64_t row, uint64_t column);
// Bytes from the first to one past the last element of a part.
uint64_t span_of(const StoredMatrix &matrix, const MatrixPart &part);
// Canonical address of a part, after checking that it lies inside its memory.
uint64_t checked_part(const char *call, const StoredMatrix &matrix, const MatrixPart &part, bool write);

// Copies a part into `target`, rows `target_row` elements apart, or with rows and columns exchanged.
void read_part(const StoredMatrix &matrix, const MatrixPart &part, float *target, size_t target_row, bool exchange);
void read_part(const StoredMatrix &matrix, const MatrixPart &part, int32_t *target, size_t target_row, bool exchange);

// What happens to sums on their way to a result: a factor and an offset for 8 bits, for all columns or for each.
struct Requantisation {
    const uint64_t *vector = nullptr;   // in global memory, one parameter for each column of the result
    uint64_t scalar = 0;
    bool enabled = false;
};

struct ResultStore {
    Requantisation quantisation;
    bool relu = false;
    AtomicMode atomic = AtomicMode::None;
    uint32_t first_column = 0;          // of the part, within the result that the quantisation vector is for
};

void write_part(const StoredMatrix &matrix, const MatrixPart &part, const float *sums, size_t sums_row, const ResultStore &store);
void write_part(const StoredMatrix &matrix, const MatrixPart &part, const int32_t *sums, size_t sums_row, const ResultStore &store);

// HF32: 11 bits of mantissa, to nearest, ties to even or away from zero.
void round_to_hf32(float *values, size_t count, bool ties_away);

}  // namespace asim
