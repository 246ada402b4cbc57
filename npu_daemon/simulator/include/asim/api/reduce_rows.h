// ReduceSum, ReduceMax, ReduceMin and ReduceMean of matrices, by a pattern that says which axis goes.
#pragma once
#include "asim/api/mask.h"
#include "asim/api/math.h"
#include "asim/api/utils.h"
#include "asim/api/vector_reduce.h"
#include "asim/semantics/rows.h"

namespace AscendC {

namespace Pattern {
namespace Reduce {
struct AR {};   // rows remain, columns go
struct RA {};   // columns remain, rows go
}  // namespace Reduce
}  // namespace Pattern

namespace reduce_rows {

template <ReduceType type, typename T>
__aicore__ inline void combine(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, uint64_t mask,
                               uint32_t repeats, uint8_t dst_stride, uint8_t src_stride) {
    const BinaryRepeatParams params{1, 1, 1, dst_stride, dst_stride, src_stride};
    if constexpr (type == ReduceType::MAX) Max(dst, src0, src1, mask, static_cast<uint8_t>(repeats), params);
    else if constexpr (type == ReduceType::MIN) Min(dst, src0, src1, mask, static_cast<uint8_t>(repeats), params);
    else Add(dst, src0, src1, mask, static_cast<uint8_t>(repeats), params);
}

template <ReduceType type, typename T>
__aicore__ inline void combine(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, uint32_t count) {
    if constexpr (type == ReduceType::MAX) Max(dst, src0, src1, static_cast<int32_t>(count));
    else if constexpr (type == ReduceType::MIN) Min(dst, src0, src1, static_cast<int32_t>(count));
    else Add(dst, src0, src1, static_cast<int32_t>(count));
    PipeBarrier<PIPE_V>();
}

// Up to 255 rows. Those longer than a repeat are folded into one first, all rows with each instruction (asc-devkit,
// adv_api/detail/reduce: by repeats of the row).
template <ReduceType type, typename T>
__aicore__ inline void last_axis(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &folded, uint32_t rows,
                                 uint32_t columns, uint32_t row_blocks) {
    constexpr uint32_t lanes = asim::kRepeatBytes / sizeof(T), repeat_blocks = asim::kRepeatBytes / asim::kUbBlockBytes;
    const auto stride = static_cast<uint8_t>(row_blocks);
    if (columns <= lanes) {
        ReduceRepeat<type, T, T>(dst, src, static_cast<int32_t>(columns), static_cast<int32_t>(rows), 1, 1, stride,
                                 ReduceOrder::ORDER_ONLY_VALUE);
        PipeBarrier<PIPE_V>();
        return;
    }
    Adds(folded, src, static_cast<T>(0), uint64_t{lanes}, static_cast<uint8_t>(rows),
         UnaryRepeatParams{1, 1, static_cast<uint8_t>(repeat_blocks), stride});
    PipeBarrier<PIPE_V>();
    for (uint32_t begin = lanes; begin < columns; begin += lanes) {
        const uint32_t count = columns - begin < lanes ? columns - begin : lanes;
        combine<type>(folded, folded, src[begin], uint64_t{count}, rows, static_cast<uint8_t>(repeat_blocks), stride);
        PipeBarrier<PIPE_V>();
    }
    ReduceRepeat<type, T, T>(dst, folded, static_cast<int32_t>(lanes), static_cast<int32_t>(rows), 1, 1, repeat_blocks,
                             ReduceOrder::ORDER_ONLY_VALUE);
    PipeBarrier<PIPE_V>();
}

// A row is folded by itself where its length is no repeat stride.
template <ReduceType type, asim::ComposedCall call, typename T>
__aicore__ inline void along_rows(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &scratch,
                                  uint32_t rows, uint32_t columns) {
    constexpr uint32_t block = asim::kUbBlockBytes / sizeof(T), lanes = asim::kRepeatBytes / sizeof(T);
    if (columns > lanes) asim::check_scratch(call, {scratch.bytes(), scratch.GetLength()}, asim::kRepeatBytes);
    const uint32_t row_blocks = (columns + block - 1) / block, fitting = scratch.GetSize() / lanes;
    uint32_t step = row_blocks > MAX_REPEAT_TIMES ? 1 : MAX_REPEAT_TIMES;
    if (columns > lanes && fitting < step) step = fitting;
    for (uint32_t done = 0; done < rows; done += step) {
        const uint32_t count = rows - done < step ? rows - done : step;
        last_axis<type>(dst[done], src[done * row_blocks * block], scratch, count, columns, count == 1 ? 8 : row_blocks);
    }
}

// Rows are added in halves: the upper ones to the lower ones, until one is left.
template <ReduceType type, asim::ComposedCall call, typename T>
__aicore__ inline void across_rows(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &scratch,
                                   uint32_t rows, uint32_t columns) {
    constexpr uint32_t block = asim::kUbBlockBytes / sizeof(T);
    const uint32_t row = (columns + block - 1) / block * block;
    if (rows == 0) return;
    uint32_t half = 1;
    while (half * 2 < rows) half *= 2;
    if (rows == 1) {
        Adds(dst, src, static_cast<T>(0), static_cast<int32_t>(columns));
        PipeBarrier<PIPE_V>();
        return;
    }
    if (half == 1) {
        combine<type>(dst, src, src[row], columns);
        return;
    }
    asim::check_scratch(call, {scratch.bytes(), scratch.GetLength()}, uint64_t{half} * row * sizeof(T));
    const uint32_t upper = rows - half;
    combine<type>(scratch, src, src[half * row], upper * row);
    if (upper < half) {
        Adds(scratch[upper * row], src[upper * row], static_cast<T>(0), static_cast<int32_t>((half - upper) * row));
        PipeBarrier<PIPE_V>();
    }
    for (half /= 2; half > 1; half /= 2) combine<type>(scratch, scratch, scratch[half * row], half * row);
    combine<type>(dst, scratch, scratch[row], columns);
}

constexpr asim::LibraryContract contract_of(asim::ComposedCall call) {
    switch (call) {
        case asim::ComposedCall::ReduceMax: return asim::LibraryContract::ReduceMax;
        case asim::ComposedCall::ReduceMin: return asim::LibraryContract::ReduceMin;
        case asim::ComposedCall::ReduceMean: return asim::LibraryContract::ReduceMean;
        case asim::ComposedCall::ReduceAll: return asim::LibraryContract::ReduceAll;
        case asim::ComposedCall::ReduceAny: return asim::LibraryContract::ReduceAny;
        default: return asim::LibraryContract::ReduceSum;
    }
}

// Rows begin at data blocks: Atlas A2 has no other form, whatever the last argument of the calls says.
template <ReduceType type, asim::ComposedCall call, typename T, typename pattern>
__aicore__ inline void reduce(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &scratch,
                              const uint32_t shape[]) {
    constexpr bool rows_remain = std::is_same_v<pattern, Pattern::Reduce::AR>;
    static_assert(rows_remain || std::is_same_v<pattern, Pattern::Reduce::RA>,
                  "the pattern of a reduction is AscendC::Pattern::Reduce::AR or RA");
    static_assert(type != ReduceType::SUM || std::is_same_v<T, float>, "sums by a pattern take float on Atlas A2");
    asim::check_matrix(call, {shape[0], shape[1]});
    asim::check_operands(contract_of(call), dst.bytes(), shape[rows_remain ? 0 : 1] * sizeof(T), src.bytes(), uint64_t{shape[0]} * shape[1] * sizeof(T));
    const LocalTensor<T> pieces = scratch.template ReinterpretCast<T>();
    if constexpr (rows_remain) along_rows<type, call>(dst, src, pieces, shape[0], shape[1]);
    else across_rows<type, call>(dst, src, pieces, shape[0], shape[1]);
}

template <typename T, typename pattern>
__aicore__ inline void scale(const LocalTensor<T> &dst, const uint32_t shape[]) {
    constexpr bool rows_remain = std::is_same_v<pattern, Pattern::Reduce::AR>;
    const auto number = static_cast<int32_t>(shape[rows_remain ? 1 : 0]);
    Muls(dst, dst, 1.0f / static_cast<float>(number), static_cast<int32_t>(shape[rows_remain ? 0 : 1]));
    PipeBarrier<PIPE_V>();
}

}  // namespace reduce_rows

#define ASIM_REDUCTION(Name, type, finish)                                                                                     \
    template <class T, class pattern, bool isReuseSource = false>                                                              \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &scratch,     \
                                const uint32_t srcShape[], bool) {                                                             \
        reduce_rows::reduce<ReduceType::type, asim::ComposedCall::Name, T, pattern>(dst, src, scratch, srcShape);                                        \
        finish;                                                                                                                \
    }                                                                                                                          \
    template <class T, class pattern, bool isReuseSource = false>                                                              \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t srcShape[], bool padded) { \
        LocalTensor<uint8_t> scratch;                                                                                          \
        PopStackBuffer<uint8_t, TPosition::LCM>(scratch);                                                                      \
        Name<T, pattern>(dst, src, scratch, srcShape, padded);                                                                 \
    }
ASIM_REDUCTION(ReduceSum, SUM, )
ASIM_REDUCTION(ReduceMax, MAX, )
ASIM_REDUCTION(ReduceMin, MIN, )
ASIM_REDUCTION(ReduceMean, SUM, (reduce_rows::scale<T, pattern>(dst, srcShape)))
#undef ASIM_REDUCTION

}  // namespace AscendC
