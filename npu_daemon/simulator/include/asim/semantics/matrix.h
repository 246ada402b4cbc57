// Matrices as the Matmul object finds them in memory: element types, layouts, and blocks read and written as numbers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "asim/semantics/stored_matrix.h"

namespace asim {

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

// The bytes of a part, to be compared with what it holds later.
std::vector<uint8_t> bytes_of(const StoredMatrix &matrix, const MatrixPart &part);

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
