// Loads from L1 into L0A and L0B. Fractals have 512 B: 16 rows of 32 B. In L0A they lie row by row of the matrix (zZ), in L0B
// column by column with the columns inside (nZ: 16 columns of 32 B along k).
#pragma once
#include <cstdint>

#include "asim/machine/export.h"
#include "asim/machine/units.h"
#include "asim/trace/record.h"

namespace asim {

// `repeats` fractals, distances in fractals from start to start on the side of L1, gaps on the side of L0.
struct Load2dShape {
    uint32_t start = 0;
    uint32_t repeats = 0;
    int64_t src_stride = 0;
    uint32_t dst_gap = 0;
    uint32_t element_bytes = 2;
    Flag transpose = false;
};

ASIM_API void load_2d(Space space, uint8_t *dst, const uint8_t *l1, Load2dShape shape);

// Squares of 16 x 16 elements (32 x 32 of one byte) that are transposed on the way; those of one and four bytes are two
// fractals. Start and stride in squares, gaps in fractals.
struct LoadSquaresShape {
    uint32_t start = 0;
    uint32_t repeats = 0;
    int64_t src_stride = 0;
    uint32_t dst_gap = 0;
    uint32_t dst_fractal_gap = 0;
    uint32_t element_bytes = 2;
};

ASIM_API void load_transposed(Space space, uint8_t *dst, const uint8_t *l1, LoadSquaresShape shape);

// A part of the matrix that a convolution multiplies: rows are output positions, columns (channel block, filter row, filter
// column, channel in the block). The feature map and what surrounds it are in registers.
struct Load3dShape {
    Flag right_matrix = false;          // whose feature map
    uint32_t channels = 0;
    uint32_t columns = 0, rows = 0, first_column = 0, first_row = 0;
    uint32_t stride_width = 1, stride_height = 1;
    uint32_t filter_width = 1, filter_height = 1;
    uint32_t dilation_width = 1, dilation_height = 1;
    Flag transpose = false;
    uint32_t element_bytes = 2;
};

ASIM_API void load_3d(Space space, uint8_t *dst, const uint8_t *l1, Load3dShape shape);

}  // namespace asim
