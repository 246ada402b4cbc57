// Softmax over the rows of a matrix.
#pragma once
#include "asim/semantics/rows.h"

namespace asim {

// Rows are `stride` elements apart; the first `shape.columns` of each count. Maxima and sums, when asked for, are
// written as one data block per row. Scratch holds a row's intermediate values at least.
template <typename T>
ASIM_API void softmax(uint8_t *dst, uint8_t *sums, uint8_t *maxima, const uint8_t *src, Matrix shape, uint32_t stride, Scratch scratch);

constexpr float kLog10OfE = 0.4342944819f;

// The logarithm to the base 10 of softmax, of half rows taken before they are rounded.
template <typename T>
ASIM_API void log_softmax(uint8_t *dst, uint8_t *sums, uint8_t *maxima, const uint8_t *src, Matrix shape, uint32_t stride, Scratch scratch);

// One step of softmax over rows that come in pieces. `sums` and `maxima` hold a data block per row: with `update` those of
// the pieces before, afterwards those with this one. dst = exp(src - maxima), factors = exp(maxima before - maxima).
struct SoftmaxPieces {
    uint8_t *sums;
    uint8_t *maxima;
    const uint8_t *sums_before;
    const uint8_t *maxima_before;
    uint8_t *factors;
    Flag update;
};
ASIM_API void softmax_piece(uint8_t *dst, const uint8_t *src, SoftmaxPieces pieces, Matrix shape, uint32_t stride, Scratch scratch);

// dst = (grad - sum of grad * src over the row) * src, or only the sums, one data block per row; half in float.
template <typename T>
ASIM_API void softmax_gradient(uint8_t *dst, const uint8_t *grad, const uint8_t *src, bool only_sums, Matrix shape, uint32_t stride,
                               Scratch scratch);

}  // namespace asim
