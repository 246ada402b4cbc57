// ReduceProd, ReduceAll, ReduceAny and ReduceXorSum (asc-devkit, adv_api/detail/reduce).
#pragma once
#include "asim/api/bitwise.h"
#include "asim/api/library_steps.h"
#include "asim/api/reduce_rows.h"
#include "asim/api/vector_gather.h"

namespace AscendC {
namespace composed_calls {

inline uint32_t power_of_two_below(uint32_t value) {
    uint32_t power = 1;
    while (power * 2 <= value) power *= 2;
    return power;
}

// Products of the first `columns` elements of rows that begin at data blocks: halves of a row are multiplied until a data block
// is left, whose elements become data blocks of their own.
inline void products_of_rows(const LocalTensor<float> &dst, const LocalTensor<float> &src, const LocalTensor<float> &scratch,
                             uint32_t rows, uint32_t columns) {
    const uint32_t stride = AlignUp(columns, kFloatsOfBlock), whole = power_of_two_below(columns), rest = columns - whole;
    asim::check_scratch(ComposedCall::ReduceProd, bytes_of(scratch),
                        (uint64_t{kFloatsOfRepeat} + rows * kFloatsOfBlock + whole) * sizeof(float));
    const LocalTensor<float> results = scratch[kFloatsOfRepeat];
    for (uint32_t row = 0; row < rows; ++row) {
        const LocalTensor<float> work = results[row * kFloatsOfBlock], from = src[row * stride];
        uint32_t left = whole;
        if (rest > 0 && columns >= kFloatsOfBlock) {
            Steps<float>(whole).adds(work, from, 0.0f);
            Steps<float>(rest).mul(work, work, from[whole]);
        } else if (whole > kFloatsOfBlock) {
            left /= 2;
            Steps<float>(left).mul(work, from, from[left]);
        } else {
            Steps<float>(columns).adds(work, from, 0.0f);
        }
        for (; left > kFloatsOfBlock;) {
            left /= 2;
            Steps<float>(left).mul(work, work, work[left]);
        }
        Brcb(scratch, work, 1, BrcbRepeatParams{1, 8});
        PipeBarrier<PIPE_V>();
        uint32_t lanes = columns < kFloatsOfBlock ? whole : kFloatsOfBlock;
        if (rest > 0 && lanes < kFloatsOfBlock) Steps<float>(rest * kFloatsOfBlock).mul(scratch, scratch,
                                                                                        scratch[whole * kFloatsOfBlock]);
        for (; lanes > 1;) {
            lanes /= 2;
            Steps<float>(lanes * kFloatsOfBlock).mul(scratch, scratch, scratch[lanes * kFloatsOfBlock]);
        }
        Steps<float>(kFloatsOfBlock).adds(work, scratch, 0.0f);
    }
    const LocalTensor<uint32_t> first = scratch.template ReinterpretCast<uint32_t>();
    Duplicate(first, 1u, static_cast<int32_t>(kFloatsOfRepeat));
    PipeBarrier<PIPE_V>();
    uint64_t taken = 0;
    GatherMask<float, uint32_t>(dst, results, first, true, kFloatsOfBlock, GatherMaskParams(1, static_cast<uint16_t>(rows), 1, 0),
                                taken);
    PipeBarrier<PIPE_V>();
}

// Products of columns: the upper rows are multiplied to the lower ones, until one is left.
inline void products_of_columns(const LocalTensor<float> &dst, const LocalTensor<float> &src, const LocalTensor<float> &scratch,
                                uint32_t rows, uint32_t columns) {
    const uint32_t row = AlignUp(columns, kFloatsOfBlock);
    uint32_t left = power_of_two_below(rows);
    const uint32_t rest = rows - left;
    asim::check_scratch(ComposedCall::ReduceProd, bytes_of(scratch), uint64_t{left} * row * sizeof(float));
    Steps<float>(left * row).adds(scratch, src, 0.0f);
    if (rest > 0) Steps<float>(rest * row).mul(scratch, scratch, src[left * row]);
    for (; left > 1;) {
        left /= 2;
        Steps<float>(left * row).mul(scratch, scratch, scratch[left * row]);
    }
    Steps<float>(columns).adds(dst, scratch, 0.0f);
}

// Of bytes: in half, whose rows begin at data blocks as well.
template <ReduceType type, ComposedCall call, typename pattern>
void reduce_bytes(const LocalTensor<uint8_t> &dst, const LocalTensor<uint8_t> &src, const LocalTensor<uint8_t> &scratch,
                  const uint32_t shape[]) {
    constexpr bool rows_remain = std::is_same_v<pattern, Pattern::Reduce::AR>;
    const uint32_t columns = AlignUp(shape[1], asim::kUbBlockBytes), elements = shape[0] * columns;
    const uint32_t results = AlignUp(rows_remain ? shape[0] : columns, asim::kUbBlockBytes);
    constexpr uint32_t lanes = asim::kRepeatBytes / sizeof(half);
    const uint32_t folded = rows_remain && shape[1] > lanes ? lanes : 0;        // of a row, a repeat
    asim::check_scratch(call, bytes_of(scratch), (uint64_t{elements} + results + folded) * sizeof(half));
    const LocalTensor<half> wide = scratch.template ReinterpretCast<half>(), result = wide[elements], rest = result[results];
    Steps<half>(elements).cast(wide, src);
    if constexpr (rows_remain) {
        for (uint32_t row = 0; row < shape[0]; ++row) {      // rows are longer than their data by a block at most
            reduce_rows::last_axis<type>(result[row], wide[row * columns], rest, 1, shape[1],
                                         shape[1] <= lanes ? 8 : columns / 16);
        }
    } else {
        const uint32_t padded[] = {shape[0], columns};
        reduce_rows::reduce<type, call, half, pattern>(result, wide, rest.template ReinterpretCast<uint8_t>(), padded);
    }
    Steps<uint8_t>(rows_remain ? shape[0] : shape[1]).cast(dst, result);
}

template <ReduceType type, ComposedCall call, typename T, typename pattern>
void reduce_flags(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &scratch,
                  const uint32_t shape[]) {
    static_assert(std::is_same_v<T, uint8_t> || std::is_same_v<T, float>, "ReduceAll and ReduceAny take uint8_t or float");
    asim::check_matrix(call, {shape[0], shape[1]});
    constexpr bool rows_remain = std::is_same_v<pattern, Pattern::Reduce::AR>;
    asim::check_operands(reduce_rows::contract_of(call), dst.bytes(), shape[rows_remain ? 0 : 1] * sizeof(T), src.bytes(),
                         uint64_t{shape[0]} * shape[1] * sizeof(T));
    if constexpr (std::is_same_v<T, uint8_t>) reduce_bytes<type, call, pattern>(dst, src, scratch, shape);
    else reduce_rows::reduce<type, call, T, pattern>(dst, src, scratch, shape);
}

}  // namespace composed_calls

#define ASIM_REDUCTION(Name, Type)                                                                                              \
    template <class T, class pattern, bool isReuseSource = false>                                                               \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &scratch,      \
                                const uint32_t srcShape[], bool) {                                                              \
        constexpr auto call = composed_calls::ComposedCall::Name;                                                               \
        composed_calls::reduce_flags<ReduceType::Type, call, T, pattern>(dst, src, scratch, srcShape);                          \
    }                                                                                                                           \
    template <class T, class pattern, bool isReuseSource = false>                                                               \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t srcShape[], bool padded) { \
        Name<T, pattern>(dst, src, composed_calls::free_scratch(), srcShape, padded);                                           \
    }
ASIM_REDUCTION(ReduceAll, MIN)
ASIM_REDUCTION(ReduceAny, MAX)
#undef ASIM_REDUCTION

template <class T, class pattern, bool isReuseSource = false>
__aicore__ inline void ReduceProd(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &scratch,
                                  const uint32_t srcShape[], bool) {
    static_assert(std::is_same_v<T, float>, "ReduceProd takes float");
    constexpr bool rows_remain = std::is_same_v<pattern, Pattern::Reduce::AR>;
    static_assert(rows_remain || std::is_same_v<pattern, Pattern::Reduce::RA>,
                  "the pattern of a reduction is AscendC::Pattern::Reduce::AR or RA");
    asim::check_matrix(composed_calls::ComposedCall::ReduceProd, {srcShape[0], srcShape[1]});
    asim::check_demand(composed_calls::ComposedCall::ReduceProd, composed_calls::Demand::AboveZero, srcShape[0] * srcShape[1], 0);
    asim::check_operands(asim::LibraryContract::ReduceProd, dst.bytes(), srcShape[rows_remain ? 0 : 1] * sizeof(T), src.bytes(),
                         uint64_t{srcShape[0]} * srcShape[1] * sizeof(T));
    const LocalTensor<float> pieces = scratch.template ReinterpretCast<float>();
    if constexpr (rows_remain) composed_calls::products_of_rows(dst, src, pieces, srcShape[0], srcShape[1]);
    else composed_calls::products_of_columns(dst, src, pieces, srcShape[0], srcShape[1]);
}
template <class T, class pattern, bool isReuseSource = false>
__aicore__ inline void ReduceProd(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t srcShape[], bool padded) {
    ReduceProd<T, pattern>(dst, src, composed_calls::free_scratch(), srcShape, padded);
}

// The sum of x ^ y, in float, as one element.
template <typename T, bool isReuseSource = false>
__aicore__ inline void ReduceXorSum(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                                    const LocalTensor<uint8_t> &sharedTmpBuffer, const uint32_t calCount) {
    static_assert(std::is_same_v<T, int16_t>, "ReduceXorSum takes int16_t");
    using composed_calls::ComposedCall;
    asim::check_demand(ComposedCall::ReduceXorSum, composed_calls::Demand::AtMost, calCount, src0.GetSize());
    asim::check_demand(ComposedCall::ReduceXorSum, composed_calls::Demand::AtMost, calCount, src1.GetSize());
    for (const LocalTensor<T> &src : {src0, src1}) {
        asim::check_operands(asim::LibraryContract::ReduceXorSum, dst.bytes(), sizeof(T), src.bytes(), uint64_t{calCount} * sizeof(T));
    }
    const uint32_t elements = AlignUp(calCount, 32u);
    asim::check_scratch(ComposedCall::ReduceXorSum, composed_calls::bytes_of(sharedTmpBuffer),
                        elements * (sizeof(float) + 2 * sizeof(T)));
    const LocalTensor<float> wide = sharedTmpBuffer.template ReinterpretCast<float>();
    const LocalTensor<T> different = wide[elements].template ReinterpretCast<T>();
    Xor<T>(different, src0, src1, different[elements].template ReinterpretCast<uint8_t>(), calCount);
    composed_calls::Steps<float>(calCount).cast(wide, different);
    ReduceSum(wide, wide, wide, static_cast<int32_t>(calCount));
    PipeBarrier<PIPE_V>();
    composed_calls::Steps<T>(1).cast(dst, wide, RoundMode::CAST_RINT);
}
template <typename T, bool isReuseSource = false>
__aicore__ inline void ReduceXorSum(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                                    const uint32_t calCount) {
    ReduceXorSum<T>(dst, src0, src1, composed_calls::free_scratch(), calCount);
}

}  // namespace AscendC
