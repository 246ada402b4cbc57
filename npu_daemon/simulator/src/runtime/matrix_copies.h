// Records of copies of parts of matrices, and the bytes these take in the memories of a cube core.
#pragma once
#include <cstdint>

#include "asim/machine/cross_core.h"
#include "asim/semantics/matrix.h"
#include "asim/trace/record.h"

namespace asim {

constexpr uint32_t kFractalRowBytes = 32;

inline uint32_t ceil_div(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit; }
inline uint32_t align_up(uint32_t value, uint32_t unit) { return ceil_div(value, unit) * unit; }

// Bytes that `k` elements of a row take for the cube.
uint32_t padded_k_bytes(NumberType type, uint32_t k);
// Bytes of a part in L1 or L0: fractals of 16 rows by 32 bytes.
uint64_t fractal_bytes(NumberType type, uint32_t rows, uint32_t k);

inline Operand local(Space space, uint64_t address, uint64_t bytes) { return {address, static_cast<uint64_t>(space), static_cast<uint32_t>(bytes), 0}; }

// Bursts of a part in global memory: its rows, or its columns of fractals.
struct Bursts {
    uint32_t count;
    uint32_t bytes;
    uint32_t stride;
};

// Rows that follow each other are one burst, except where they are to be `apart`: on their way to L1 each is turned into fractals
// by itself.
Bursts bursts_of(const StoredMatrix &matrix, const MatrixPart &part, bool apart = false);

Record copy_record(Op op, const StoredMatrix &matrix, const Bursts &bursts);

// Where vector and cube core of the running group meet.
Operand mailbox_operand(uint32_t bytes);
// A part of a matrix in L1 that belongs to the kernel and not to the library; kKernelsL1 says so of the record.
Operand kernels_l1_operand(const StoredMatrix &matrix, const MatrixPart &part);
Operand gm_operand(const char *call, const StoredMatrix &matrix, const MatrixPart &part, const Bursts &bursts, bool write);

}  // namespace asim
