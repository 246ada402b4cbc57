// SoftmaxFlash and SoftmaxFlashV3 of ND tensors. Compositions of our own by the formulas of their pages, in float.
#pragma once
#include "asim/api/norm_gradients.h"

namespace AscendC {
namespace composed_calls {

// Rows of T, and a data block of S for each number that is kept of a row; the factors have the type of the rows.
template <typename T, typename S>
struct FlashTensors {
    LocalTensor<T> dst, src, factor;
    LocalTensor<S> sum, max, sumBefore, maxBefore;
};

template <typename T>
constexpr uint32_t kElemsOfBlock = asim::kUbBlockBytes / sizeof(T);

// What SoftMax and SoftmaxFlashV2 of floats take for themselves (src/runtime/library_softmax.cpp), and a data block a row for sums.
inline uint64_t flash_floats(uint32_t rows, uint32_t columns, bool update) {
    const uint32_t parts = whole_eights((columns + kFloatsOfRepeat - 1) / kFloatsOfRepeat);
    return uint64_t{update ? rows : 0} * kFloatsOfBlock + kFloatsOfBlock + kFloatsOfRepeat + (parts < kFloatsOfRepeat ? kFloatsOfRepeat : parts);
}

// The number of each row as a data block, from halves to floats and back.
inline void blocks_in_float(const Floats &dst, const LocalTensor<half> &src, uint32_t rows) {
    Cast(dst, src, RoundMode::CAST_NONE, uint64_t{kFloatsOfBlock}, static_cast<uint8_t>(rows), UnaryRepeatParams{1, 1, 1, 1});
    PipeBarrier<PIPE_V>();
}
inline void blocks_in_half(const LocalTensor<half> &dst, const Floats &src, uint32_t rows) {
    Cast(dst, src, RoundMode::CAST_ROUND, uint64_t{kElemsOfBlock<half>}, static_cast<uint8_t>(rows), UnaryRepeatParams{1, 0, 1, 1});
    PipeBarrier<PIPE_V>();
}

inline void flash_rows(const FlashTensors<float, float> &x, const SoftmaxRows &rows, const LocalTensor<uint8_t> &scratch, bool update) {
    const SoftMaxShapeInfo shape{rows.shape.rows, rows.stride, rows.shape.rows, rows.shape.columns};
    if (!update) return SoftMax<float>(x.dst, x.sum, x.max, x.src, scratch, SoftMaxTiling{}, shape);
    const uint32_t numbers = rows.shape.rows * kFloatsOfBlock;
    const Floats before = scratch.template ReinterpretCast<float>();
    const Steps<float> blocks(numbers);
    blocks.muls(before, x.sumBefore, 1.0f);
    SoftmaxFlashV2<float, true>(x.dst, x.sum, x.max, x.src, x.factor, x.sumBefore, x.maxBefore,
                                scratch[numbers * static_cast<uint32_t>(sizeof(float))], SoftMaxTiling{}, shape);
    blocks.mul(x.factor, x.factor, before);
    blocks.div(x.factor, x.factor, x.sum);
    with_row_blocks(x.dst, x.dst, RowBlocks{x.sum, 1}, rows.shape.rows, rows.stride,
                    [](const Floats &to, const Floats &from, const Floats &block, const auto &params) {
                        Div<float, false>(to, from, block, kRegisterMask, 1, params);
                    });
}

// Rows of halves, as many at once as fit in float, with those of their numbers that are halves.
template <typename S>
void flash_half_rows(const FlashTensors<half, S> &x, const SoftmaxRows &rows, const LocalTensor<uint8_t> &scratch, bool update) {
    constexpr bool converts = std::is_same_v<S, half>;
    constexpr uint32_t kBlocks = converts ? 5 : 1, kMostRows = MAX_REPEAT_TIMES, block = kElemsOfBlock<S>;
    const auto floats = [&](uint32_t number) {
        return uint64_t{number} * (rows.stride + kBlocks * kFloatsOfBlock) + flash_floats(number, rows.shape.columns, update);
    };
    asim::check_scratch(ComposedCall::SoftmaxFlash, bytes_of(scratch), floats(1) * sizeof(float));
    const uint64_t fixed = floats(0), each = floats(1) - fixed, fitting = (scratch.GetSize() / sizeof(float) - fixed) / each;
    in_rounds(rows.shape.rows, static_cast<uint32_t>(fitting < kMostRows ? fitting : kMostRows), [&](uint32_t done, uint32_t number) {
        ScratchFloats floats_left(scratch);
        const uint32_t count = number * rows.stride, numbers = number * kFloatsOfBlock, first = done * rows.stride, at = done * block;
        const Floats wide = floats_left.take(count), factor = floats_left.take(numbers);
        FlashTensors<float, float> y{wide, wide, factor, {}, {}, {}, {}};
        if constexpr (converts) {
            y.sum = y.sumBefore = floats_left.take(numbers), y.max = y.maxBefore = floats_left.take(numbers);
        } else {
            y.sum = x.sum[at], y.max = x.max[at], y.sumBefore = x.sumBefore[at], y.maxBefore = x.maxBefore[at];
        }
        Steps<float>(count).cast(wide, x.src[first]);
        if constexpr (converts) {
            if (update) blocks_in_float(y.sum, x.sumBefore[at], number), blocks_in_float(y.max, x.maxBefore[at], number);
        }
        flash_rows(y, {{number, rows.shape.columns}, rows.stride}, floats_left.rest().template ReinterpretCast<uint8_t>(), update);
        Steps<half>(count).cast(x.dst[first], wide, RoundMode::CAST_ROUND);
        if constexpr (converts) blocks_in_half(x.sum[at], y.sum, number), blocks_in_half(x.max[at], y.max, number);
        if (update) blocks_in_half(x.factor[done * kElemsOfBlock<half>], factor, number);
    });
}

template <typename T, typename S>
void flash(const FlashTensors<T, S> &x, const LocalTensor<uint8_t> &scratch, const SoftMaxTiling &tiling, bool update, const SoftMaxShapeInfo &shape) {
    constexpr LibraryContract contract = LibraryContract::SoftmaxFlash;
    const SoftmaxRows rows = rows_of(ComposedCall::SoftmaxFlash, x.src, tiling, shape);
    asim::check_matrix(ComposedCall::SoftmaxFlash, {rows.shape.rows, rows.stride});
    asim::check_demand(ComposedCall::SoftmaxFlash, Demand::WholeBlocks, rows.stride * static_cast<uint32_t>(sizeof(T)), 0);
    check_operands(contract, x.dst, rows.shape.rows * rows.stride, scratch, x.src);
    if (update) {
        const uint32_t numbers = rows.shape.rows * kElemsOfBlock<S>;
        check_operands(contract, x.sum, numbers, scratch, x.sumBefore);
        check_operands(contract, x.max, numbers, scratch, x.maxBefore);
    }
    if constexpr (std::is_same_v<T, float>) {
        const uint64_t floats = flash_floats(rows.shape.rows, rows.shape.columns, update);
        asim::check_scratch(ComposedCall::SoftmaxFlash, bytes_of(scratch), floats * sizeof(float));
        flash_rows(x, rows, scratch, update);
    } else {
        flash_half_rows(x, rows, scratch, update);
    }
}

}  // namespace composed_calls

// Softmax of rows that come in pieces: normalized with each piece, and the factor of what came before.
template <typename T, bool isReuseSource = false, bool isBasicBlock = false>
__aicore__ inline void SoftmaxFlash(const LocalTensor<T> &dstTensor, const LocalTensor<T> &sumTensor, const LocalTensor<T> &maxTensor,
                                    const LocalTensor<T> &srcTensor, const LocalTensor<T> &expMaxTensor, const LocalTensor<T> &inSumTensor,
                                    const LocalTensor<T> &inMaxTensor, const LocalTensor<uint8_t> &sharedTmpBuffer, const SoftMaxTiling &tiling,
                                    bool isUpdate = false, const SoftMaxShapeInfo &softmaxShapeInfo = {}) {
    require_math_type<T>();
    composed_calls::flash<T, T>({dstTensor, srcTensor, expMaxTensor, sumTensor, maxTensor, inSumTensor, inMaxTensor}, sharedTmpBuffer, tiling, isUpdate,
                                softmaxShapeInfo);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false>
__aicore__ inline void SoftmaxFlash(const LocalTensor<half> &dstTensor, const LocalTensor<float> &sumTensor, const LocalTensor<float> &maxTensor,
                                    const LocalTensor<half> &srcTensor, const LocalTensor<half> &expMaxTensor, const LocalTensor<float> &inSumTensor,
                                    const LocalTensor<float> &inMaxTensor, const LocalTensor<uint8_t> &sharedTmpBuffer, const SoftMaxTiling &tiling,
                                    bool isUpdate = false, const SoftMaxShapeInfo &softmaxShapeInfo = {}) {
    static_assert(std::is_same_v<T, half>, "SoftmaxFlash keeps numbers of float beside tensors of half");
    composed_calls::flash<half, float>({dstTensor, srcTensor, expMaxTensor, sumTensor, maxTensor, inSumTensor, inMaxTensor}, sharedTmpBuffer, tiling,
                                       isUpdate, softmaxShapeInfo);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false>
__aicore__ inline void SoftmaxFlash(const LocalTensor<T> &dstTensor, const LocalTensor<T> &sumTensor, const LocalTensor<T> &maxTensor,
                                    const LocalTensor<T> &srcTensor, const LocalTensor<T> &expMaxTensor, const LocalTensor<T> &inSumTensor,
                                    const LocalTensor<T> &inMaxTensor, const SoftMaxTiling &tiling, bool isUpdate = false,
                                    const SoftMaxShapeInfo &softmaxShapeInfo = {}) {
    SoftmaxFlash<T, isReuseSource, isBasicBlock>(dstTensor, sumTensor, maxTensor, srcTensor, expMaxTensor, inSumTensor, inMaxTensor,
                                                 composed_calls::free_scratch(), tiling, isUpdate, softmaxShapeInfo);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false>
__aicore__ inline void SoftmaxFlash(const LocalTensor<half> &dstTensor, const LocalTensor<float> &sumTensor, const LocalTensor<float> &maxTensor,
                                    const LocalTensor<half> &srcTensor, const LocalTensor<half> &expMaxTensor, const LocalTensor<float> &inSumTensor,
                                    const LocalTensor<float> &inMaxTensor, const SoftMaxTiling &tiling, bool isUpdate = false,
                                    const SoftMaxShapeInfo &softmaxShapeInfo = {}) {
    SoftmaxFlash<T, isReuseSource, isBasicBlock>(dstTensor, sumTensor, maxTensor, srcTensor, expMaxTensor, inSumTensor, inMaxTensor,
                                                 composed_calls::free_scratch(), tiling, isUpdate, softmaxShapeInfo);
}

}  // namespace AscendC
