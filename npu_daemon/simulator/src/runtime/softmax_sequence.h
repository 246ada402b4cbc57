// The vector instructions that the published SoftMax and LogSoftMax issue (asc-devkit, impl/adv_api/detail/activation/softmax, dav-2201):
// as many rows at once as the scratch buffer holds, where our values come from eight rows at a time.
#pragma once
#include "asim/semantics/math.h"
#include "asim/semantics/rows.h"
#include "scratch_use.h"

namespace asim {

// Rows of `stride` elements of which the first `shape.columns` count; `wide` when half rows are converted. Maxima and sums, a data block
// a row, go to these tensors if there are any: of half rows they are half, so that a row has two data blocks of floats.
struct SoftmaxRows {
    uint8_t *dst;
    const uint8_t *src;
    uint8_t *maxima;
    uint8_t *sums;
    Matrix shape;
    uint32_t stride;
    bool wide;
    bool logarithm;     // to the base 10, of the result

    uint32_t number_blocks() const { return wide && sums != nullptr ? 2 : 1; }
};

// Rows at once; 0 if the scratch buffer is too small for the library.
uint32_t rows_at_once(const SoftmaxRows &rows, Scratch scratch);

// What `at_once` rows take of the scratch buffer.
ScratchUse scratch_use(const char *call, const SoftmaxRows &rows, uint32_t at_once, Scratch scratch);

void issue_softmax(const SoftmaxRows &rows, uint32_t at_once, Scratch scratch);

}  // namespace asim
