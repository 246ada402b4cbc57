// Matrices transposed by TransDataTo5HD, 16 rows with a data block of columns at a time, as composed library calls do it.
#pragma once
#include "asim/api/library_steps.h"
#include "asim/api/vector_transpose.h"

namespace AscendC {
namespace composed_calls {

constexpr uint32_t kTransposedRows = NCHW_CONV_ADDR_LIST_SIZE;

template <typename T>
uint64_t address_of(const LocalTensor<T> &tensor, uint32_t index) {
    return reinterpret_cast<uint64_t>(tensor.bytes() + uint64_t{index} * sizeof(T));
}

// Where element `row`, `column` of a matrix of `T` is, whose rows are `width` elements.
template <typename T>
struct Grid {
    LocalTensor<T> tensor;
    uint32_t width;
    uint64_t at(uint32_t row, uint32_t column) const { return address_of(tensor, row * width + column); }
};

// One instruction: `repeats` squares of 16 rows and a data block of columns, from `src` on to `dst` on. Of floats a square is 8 wide,
// and its result has two data blocks a row.
template <typename T>
void transpose_squares(const Grid<T> &dst, const Grid<T> &src, uint32_t row, uint32_t column, uint32_t last_row, uint8_t repeats,
                       uint32_t dst_step, uint32_t src_step) {
    constexpr uint32_t block = asim::kUbBlockBytes / sizeof(T);
    uint64_t to[kTransposedRows], from[kTransposedRows];
    for (uint32_t n = 0; n < kTransposedRows; ++n) {
        from[n] = src.at(row + n % (last_row - row), column);
        if constexpr (sizeof(T) == sizeof(float)) to[n] = dst.at(column + n / 2, row + n % 2 * block);
        else to[n] = dst.at(column + n, row);
    }
    TransDataTo5HD<T>(to, from, {false, false, repeats, static_cast<uint16_t>(repeats > 1 ? dst_step : 0),
                                 static_cast<uint16_t>(repeats > 1 ? src_step : 0)});
}

// dst[column][row] = src[row][column]; rows are rounded up to 16, those beyond the last repeat earlier ones. What there is more of,
// groups of rows or blocks of columns, are the repeats of an instruction.
template <typename T>
void rows_to_columns(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint32_t rows, uint32_t columns) {
    constexpr uint32_t block = asim::kUbBlockBytes / sizeof(T), square_blocks = kTransposedRows / block;
    const uint32_t aligned = (rows + kTransposedRows - 1) / kTransposedRows * kTransposedRows;
    const Grid<T> to{dst, aligned}, from{src, columns};
    const uint32_t groups = aligned / kTransposedRows, blocks = columns / block;
    if (rows == aligned && aligned > columns) {
        for (uint32_t i = 0; i < blocks; ++i) {
            transpose_squares(to, from, 0, i * block, kTransposedRows, static_cast<uint8_t>(groups), square_blocks, columns * square_blocks);
        }
    } else {
        for (uint32_t i = 0; i < groups; ++i) {
            transpose_squares(to, from, i * kTransposedRows, 0, rows, static_cast<uint8_t>(blocks), aligned, 1);
        }
    }
    PipeBarrier<PIPE_V>();
}

// dst[row][column] = src[column][row] of 16 columns of 16-bit elements, or 8 of floats, and groups of 16 rows.
template <typename T>
void transpose_back(const Grid<T> &dst, const Grid<T> &src, uint32_t row, uint32_t column, uint8_t repeats, uint32_t dst_step,
                    uint32_t src_step) {
    constexpr uint32_t half_rows = kTransposedRows / 2;
    uint64_t to[kTransposedRows], from[kTransposedRows];
    for (uint32_t n = 0; n < kTransposedRows; ++n) {
        if constexpr (sizeof(T) == sizeof(float)) {
            from[n] = src.at(column + n % half_rows, row + n / half_rows * half_rows);
            to[n] = dst.at(row + n / 2 + n % 2 * half_rows, column);
        } else {
            from[n] = src.at(column + n, row);
            to[n] = dst.at(row + n, column);
        }
    }
    TransDataTo5HD<T>(to, from, {false, false, repeats, static_cast<uint16_t>(repeats > 1 ? dst_step : 0),
                                 static_cast<uint16_t>(repeats > 1 ? src_step : 0)});
}

template <typename T>
void columns_to_rows(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint32_t rows, uint32_t columns) {
    constexpr uint32_t block = asim::kUbBlockBytes / sizeof(T), square_blocks = kTransposedRows / block;
    const Grid<T> to{dst, columns}, from{src, rows};
    const uint32_t groups = rows / kTransposedRows, blocks = columns / block;
    if (rows > columns) {
        for (uint32_t i = 0; i < blocks; ++i) {
            transpose_back(to, from, 0, i * block, static_cast<uint8_t>(groups), columns * square_blocks, square_blocks);
        }
    } else {
        for (uint32_t i = 0; i < groups; ++i) transpose_back(to, from, i * kTransposedRows, 0, static_cast<uint8_t>(blocks), 1, rows);
    }
    PipeBarrier<PIPE_V>();
}

}  // namespace composed_calls
}  // namespace AscendC
