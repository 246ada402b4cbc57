// Library calls on matrices of rows: broadcasting, sums over rows, and selection by bytes.
#pragma once
#include "asim/semantics/composed_call.h"
#include "asim/semantics/math.h"

namespace asim {

struct Matrix {
    uint32_t rows = 1;
    uint32_t columns = 1;
};

// Faults where there are more elements than the unified buffer holds, or less scratch than a call needs.
ASIM_API void check_matrix(ComposedCall call, Matrix shape);
ASIM_API void check_scratch(ComposedCall call, Scratch scratch, uint64_t needed_bytes);
// Faults where more rows or columns count than there are with padding.
ASIM_API void check_counting(ComposedCall call, Matrix counting, Matrix padded);
// Faults where `value`, which is that of `what`, is not what the page of a call demands.
ASIM_API void check_demand(ComposedCall call, Demand demand, uint32_t value, uint32_t bound, Quantity what = Quantity::Extent);

// dst[i][j] = src[i] (along the last axis) or src[j]; Bits as wide as an element.
template <typename Bits>
ASIM_API void broadcast_columns(uint8_t *dst, const uint8_t *src, Matrix shape, Scratch scratch);
template <typename Bits>
ASIM_API void broadcast_rows(uint8_t *dst, const uint8_t *src, Matrix shape, Scratch scratch);

// dst[i] = sum of the first `columns` elements of row i; rows start `stride` elements apart.
template <typename T>
ASIM_API void sum_rows(uint8_t *dst, const uint8_t *src, Matrix shape, uint32_t stride, Scratch scratch);

// dst[i] = sum of row i divided by the number of its elements.
template <typename T>
ASIM_API void mean_rows(uint8_t *dst, const uint8_t *src, Matrix shape, uint32_t stride, Scratch scratch);

// The same of half elements, added up in float.
ASIM_API void mean_rows_in_float(uint8_t *dst, const uint8_t *src, Matrix shape, uint32_t stride, Scratch scratch);

// dst[i][j] = (mask[i][j] == 0) == keep_where_zero ? src[i][j] : scalar; rows of bytes start `mask_columns` apart.
template <typename T>
ASIM_API void select_by_bytes(uint8_t *dst, const uint8_t *src, T scalar, const uint8_t *mask, Matrix shape,
                              uint32_t mask_columns, bool keep_where_zero, Scratch scratch);

}  // namespace asim
