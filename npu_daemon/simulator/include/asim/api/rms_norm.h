// RmsNorm: rows divided by the root of the mean of their squares (asc-devkit, adv_api/detail/normalization/rmsnorm).
#pragma once
#include "asim/api/library_steps.h"
#include "asim/api/library_tiling.h"
#include "asim/api/vector_gather.h"
#include "asim/api/vector_reduce.h"

namespace AscendC {
namespace composed_calls {

// dst[i] = sum of row i, which is overwritten; rows lie `stride` elements apart.
inline void fold_squares(const LocalTensor<float> &dst, const LocalTensor<float> &src, uint32_t rows, uint32_t stride,
                         uint32_t columns) {
    for (uint32_t row = 0; row < rows; ++row) {
        const LocalTensor<float> from = src[row * stride];
        uint32_t left = columns;
        do {
            const LocalTensor<float> to = left <= kFloatsOfRepeat ? dst[row] : from;
            counted(left, [&] { RepeatReduceSum<float, false>(to, from, 1, kRegisterMask, 1, 1, 1, 8); });
            PipeBarrier<PIPE_V>();
            left = DivCeil(left, kFloatsOfRepeat);
        } while (left > 1);
    }
}

// Likewise for rows of whole repeats, all of them with each instruction.
inline void fold_blocks(const LocalTensor<float> &dst, const LocalTensor<float> &src, uint32_t rows, uint32_t stride) {
    const auto row_blocks = static_cast<uint8_t>(stride / kFloatsOfBlock);
    const BinaryRepeatParams params{1, 1, 1, row_blocks, row_blocks, row_blocks};
    counted(rows * kFloatsOfRepeat, [&] {
        for (uint32_t column = kFloatsOfRepeat; column < stride; column += kFloatsOfRepeat) {
            Add<float, false>(src, src, src[column], kRegisterMask, 1, params);
            PipeBarrier<PIPE_V>();
        }
        RepeatReduceSum<float, false>(dst, src, 1, kRegisterMask, 1, 1, 1, row_blocks);
        PipeBarrier<PIPE_V>();
    });
}

// dst[i][j] = src[i][j] * factors[i], read by the scalar unit.
inline void scale_rows(const LocalTensor<float> &dst, const LocalTensor<float> &src, const LocalTensor<float> &factors,
                       uint32_t rows, uint32_t stride) {
    await<HardEvent::V_S>();
    for (uint32_t row = 0; row < rows; ++row) {
        const float factor = factors.GetValue(row);
        Muls(dst[row * stride], src[row * stride], factor, static_cast<int32_t>(stride));
    }
    PipeBarrier<PIPE_V>();
}

// Likewise for eight rows of whole repeats at a time, whose factors become data blocks.
inline void scale_blocks(const LocalTensor<float> &dst, const LocalTensor<float> &src, const LocalTensor<float> &factors,
                         uint32_t rows, uint32_t stride) {
    const auto row_blocks = static_cast<uint16_t>(stride / kFloatsOfBlock);
    Brcb(dst, factors, static_cast<uint8_t>(rows / 8), BrcbRepeatParams{row_blocks, static_cast<uint16_t>(row_blocks * 8)});
    PipeBarrier<PIPE_V>();
    counted(rows * kFloatsOfRepeat, [&] {
        const auto distance = static_cast<uint8_t>(row_blocks);
        for (uint32_t column = 0; column < stride; column += kFloatsOfRepeat) {
            Adds<float, false>(dst[column], dst, 0.0f, kRegisterMask, 1, UnaryRepeatParams{1, 0, distance, distance});
        }
        PipeBarrier<PIPE_V>();
    });
    Steps<float>(rows * stride).mul(dst, dst, src);
}

// dst[i][j] = src[i][j] * factors[j]
inline void scale_columns(const LocalTensor<float> &dst, const LocalTensor<float> &src, const LocalTensor<float> &factors,
                          uint32_t rows, uint32_t stride) {
    const uint32_t whole = stride / kFloatsOfRepeat, rest = stride % kFloatsOfRepeat;
    const auto row_blocks = static_cast<uint8_t>(stride / kFloatsOfBlock);
    const BinaryRepeatParams params{1, 1, 1, row_blocks, row_blocks, 0};
    if (whole >= rows && whole > 0) {
        for (uint32_t row = 0; row < rows; ++row) Mul(dst[row * stride], src[row * stride], factors,
                                                      static_cast<int32_t>(stride));
    } else {
        counted(rows * kFloatsOfRepeat, [&] {
            for (uint32_t column = 0; column < whole * kFloatsOfRepeat; column += kFloatsOfRepeat) {
                Mul<float, false>(dst[column], src[column], factors[column], kRegisterMask, 1, params);
            }
        });
        const uint32_t column = whole * kFloatsOfRepeat;
        if (rest > 0) Mul(dst[column], src[column], factors[column], uint64_t{rest}, static_cast<uint8_t>(rows), params);
    }
    PipeBarrier<PIPE_V>();
}

// Places in the scratch buffer: sums of rows, the rows worked on, and half rows in float.
struct RmsScratch {
    LocalTensor<float> sums, work, wide;
};

template <typename T, bool isBasicBlock>
void rms_norm_rows(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &gamma, T epsilon,
                   const RmsNormTiling &tiling, const RmsScratch &scratch, uint32_t rows) {
    const uint32_t stride = tiling.hLength, elements = rows * stride;
    const Steps<float> all(elements), each(rows);
    LocalTensor<float> x;
    if constexpr (std::is_same_v<T, half>) all.cast(x = scratch.wide, src);
    else x = src;
    all.mul(scratch.work, x, x);
    if constexpr (isBasicBlock) fold_blocks(scratch.sums, scratch.work, rows, stride);
    else fold_squares(scratch.sums, scratch.work, rows, stride, tiling.originalHLength);
    each.muls(scratch.sums, scratch.sums, tiling.reciprocalOfHLength);
    each.adds(scratch.sums, scratch.sums, static_cast<float>(epsilon));
    each.ln(scratch.sums, scratch.sums);
    each.muls(scratch.sums, scratch.sums, -0.5f);
    each.exp(scratch.sums, scratch.sums);
    if (isBasicBlock && rows > 8 && rows > stride / kFloatsOfRepeat) scale_blocks(scratch.work, x, scratch.sums, rows, stride);
    else scale_rows(scratch.work, x, scratch.sums, rows, stride);
    if constexpr (std::is_same_v<T, half>) {
        Steps<float>(stride).cast(scratch.wide, gamma);
        scale_columns(scratch.work, scratch.work, scratch.wide, rows, stride);
        Steps<half>(elements).cast(dst, scratch.work);
    } else {
        scale_columns(dst, scratch.work, gamma, rows, stride);
    }
}

// A plan whose rounds are whole rows, and with basic blocks whole repeats of rows in groups of eight, as the page has it.
template <typename T, bool isBasicBlock>
void check_rms_norm(const RmsNormTiling &tiling) {
    constexpr ComposedCall call = ComposedCall::RmsNorm;
    constexpr uint32_t kMostBasicColumns = 2047, kRowsOfGroup = 8;
    asim::check_matrix(call, {tiling.bLength, tiling.sLength});
    asim::check_matrix(call, {tiling.bLength * tiling.sLength, tiling.hLength});
    asim::check_matrix(call, {tiling.mainBsLength, tiling.hLength});
    asim::check_demand(call, Demand::WholeBlocks, tiling.hLength * static_cast<uint32_t>(sizeof(T)), 0);
    asim::check_demand(call, Demand::Most, tiling.originalHLength, tiling.hLength, Quantity::OriginalHLength);
    asim::check_demand(call, Demand::AboveZero, tiling.mainBsLength, 0, Quantity::MainBsLength);
    asim::check_demand(call, Demand::Equal, tiling.mainBshLength, tiling.mainBsLength * tiling.hLength, Quantity::MainBshLength);
    if constexpr (isBasicBlock) {
        asim::check_demand(call, Demand::Multiple, tiling.hLength, kFloatsOfRepeat, Quantity::HLength);
        asim::check_demand(call, Demand::Most, tiling.hLength, kMostBasicColumns, Quantity::HLength);
        asim::check_demand(call, Demand::Multiple, tiling.bLength * tiling.sLength, kRowsOfGroup, Quantity::Rows);
        if (tiling.mainBsLength > kRowsOfGroup) {
            asim::check_demand(call, Demand::Multiple, tiling.mainBsLength, kRowsOfGroup, Quantity::MainBsLength);
        }
    } else if (tiling.hLength % kFloatsOfRepeat != 0) {
        asim::check_demand(call, Demand::Most, tiling.mainBsLength, MAX_REPEAT_TIMES, Quantity::MainBsLength);
    }
}

}  // namespace composed_calls

template <typename T, bool isBasicBlock = false>
__aicore__ inline void RmsNorm(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, const LocalTensor<T> &gammaLocal,
                               const LocalTensor<uint8_t> &sharedTmpBuffer, const T epsilon, const RmsNormTiling &tiling) {
    require_math_type<T>();
    using composed_calls::ComposedCall;
    composed_calls::check_rms_norm<T, isBasicBlock>(tiling);
    asim::check_operands(asim::LibraryContract::RmsNorm, dstLocal.bytes(), uint64_t{tiling.bLength} * tiling.sLength * tiling.hLength * sizeof(T),
                         gammaLocal.bytes(), uint64_t{tiling.hLength} * sizeof(T));
    const uint32_t aligned = AlignUp(tiling.mainBsLength, composed_calls::kFloatsOfBlock);
    const uint32_t floats = aligned + tiling.mainBshLength * (std::is_same_v<T, half> ? 2 : 1);
    asim::check_scratch(ComposedCall::RmsNorm, composed_calls::bytes_of(sharedTmpBuffer), uint64_t{floats} * sizeof(float));
    const LocalTensor<float> base = sharedTmpBuffer.template ReinterpretCast<float>();
    const composed_calls::RmsScratch scratch{base, base[aligned], base[aligned + tiling.mainBshLength]};
    const uint32_t rows = tiling.bLength * tiling.sLength;
    composed_calls::in_rounds(rows, tiling.mainBsLength, [&](uint32_t done, uint32_t number) {
        const uint32_t offset = done * tiling.hLength;
        composed_calls::rms_norm_rows<T, isBasicBlock>(dstLocal[offset], srcLocal[offset], gammaLocal, epsilon, tiling, scratch,
                                                       number);
    });
}
template <typename T, bool isBasicBlock = false>
__aicore__ inline void RmsNorm(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, const LocalTensor<T> &gammaLocal,
                               const T epsilon, const RmsNormTiling &tiling) {
    RmsNorm<T, isBasicBlock>(dstLocal, srcLocal, gammaLocal, composed_calls::free_scratch(), epsilon, tiling);
}

}  // namespace AscendC
