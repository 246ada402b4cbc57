// Copies into L1 and out of it, and the small tables that are filled from there. On a vector core they do nothing, as on the
// device.
#pragma once
#include <cstdint>

#include "asim/machine/block.h"
#include "asim/semantics/copy.h"

namespace asim {

// `ub_stride_bytes` of the shape is the distance between bursts in L1 (or in the L0 memory that `space` names).
void copy_gm_to_l1(const char *call, Space space, uint8_t *dst, const uint8_t *gm, const CopyShape &shape, const PadShape &pad);
void copy_l1_to_gm(const char *call, uint8_t *gm, const uint8_t *src, const CopyShape &shape);

// Matrices of `rows` x `columns` elements in global memory, written as columns of 32 B blocks (NZ).
struct Nd2NzShape {
    uint32_t matrices = 1;
    uint32_t rows = 0;
    uint32_t columns = 0;
    uint64_t matrix_stride_bytes = 0;       // between matrices in GM
    uint64_t row_stride_bytes = 0;
    uint64_t nz_column_stride_bytes = 0;    // between columns of blocks in L1
    uint64_t nz_row_stride_bytes = 0;
    uint64_t nz_matrix_stride_bytes = 0;
    uint32_t element_bytes = 2;
    bool bypass_l2 = false;
};

void copy_nd_to_nz(uint8_t *l1, const uint8_t *gm, const Nd2NzShape &shape);

// `repeats` runs of `blocks` blocks of one value; a block has 32 B in L1 and 512 B in L0A and L0B.
struct FillShape {
    uint32_t repeats = 0;
    uint32_t blocks = 0;
    uint32_t gap_blocks = 0;
    uint8_t value[4] = {};
    uint32_t element_bytes = 2;
};

void fill_local(const char *call, Space space, uint8_t *dst, const FillShape &shape);

// From L1 to the bias table or the fixpipe buffer; halves become floats where asked for.
void copy_l1_to_table(const char *call, Space space, uint8_t *dst, const uint8_t *src, const CopyShape &shape, bool half_to_float);

}  // namespace asim
