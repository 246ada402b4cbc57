// Softmax over the rows of a matrix.
#pragma once
#include "asim/semantics/rows.h"

namespace asim {

// Rows are `stride` elements apart; the first `shape.columns` of each take part. Maxima and sums, when asked for, are
// written as one data block per row. Scratch holds eight rows' intermediate values at least.
template <typename T>
void softmax(uint8_t *dst, uint8_t *sums, uint8_t *maxima, const uint8_t *src, Matrix shape, uint32_t stride, Scratch scratch);

}  // namespace asim
