// The vector instructions that the published SoftMax issues (asc-devkit, impl/adv_api/detail/activation/softmax, dav-2201):
// as many rows at once as the scratch buffer holds, where our values come from eight rows at a time.
#pragma once
#include "asim/semantics/math.h"
#include "asim/semantics/rows.h"

namespace asim {

// Rows of `stride` elements of which the first `shape.columns` take part; `wide` when half rows are converted. Maxima and
// sums, a data block a row, go to these tensors if there are any.
struct SoftmaxRows {
    uint8_t *dst;
    const uint8_t *src;
    uint8_t *maxima;
    uint8_t *sums;
    Matrix shape;
    uint32_t stride;
    bool wide;
};

// Rows at once; 0 if the scratch buffer is too small for the library.
uint32_t rows_at_once(const SoftmaxRows &rows, Scratch scratch);

void issue_softmax(const SoftmaxRows &rows, uint32_t at_once, Scratch scratch);

}  // namespace asim
