// Copies into L1 and out of it, and the small tables that are filled from there. On a vector core they do nothing, as on the
// device.
#pragma once
#include <cstdint>

#include "asim/trace/record.h"
#include "asim/semantics/copy.h"

namespace asim {

// `ub_stride_bytes` of the shape is the distance between bursts in L1 (or in the L0 memory that `space` names).
ASIM_API void copy_gm_to_l1(CopyCall call, Space space, uint8_t *dst, const uint8_t *gm, CopyShape shape, PadShape pad);
ASIM_API void copy_l1_to_gm(uint8_t *gm, const uint8_t *src, CopyShape shape);

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
    Flag bypass_l2 = false;
};

// To L1 on a cube core, to the unified buffer on a vector core.
ASIM_API void copy_nd_to_nz(uint8_t *l1, const uint8_t *gm, Nd2NzShape shape);

// Matrices of 16 elements wide columns in the unified buffer become rows in global memory.
struct Nz2NdShape {
    uint32_t matrices = 0;
    uint32_t rows = 0;
    uint32_t columns = 0;
    uint32_t matrix_stride_fractals = 0;    // 256 elements each
    uint32_t column_stride_rows = 0;        // 16 elements each
    uint32_t row_stride_elems = 0;
    uint32_t target_stride_elems = 0;       // between matrices in global memory
    uint32_t element_bytes = 2;
    Flag bypass_l2 = false;
};

ASIM_API void copy_nz_to_nd(uint8_t *gm, const uint8_t *ub, Nz2NdShape shape, uint32_t dtype_code);

// `repeats` runs of `blocks` blocks of one value; a block has 32 B in L1 and 512 B in L0A and L0B.
struct FillShape {
    uint32_t repeats = 0;
    uint32_t blocks = 0;
    uint32_t gap_blocks = 0;
    uint8_t value[4] = {};
    uint32_t element_bytes = 2;
};

ASIM_API void fill_local(Space space, uint8_t *dst, FillShape shape);

// From L1 to the bias table or the fixpipe buffer; halves become floats where asked for.
ASIM_API void copy_l1_to_table(Space space, uint8_t *dst, const uint8_t *src, CopyShape shape, bool half_to_float);

}  // namespace asim
