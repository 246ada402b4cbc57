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
    const uint32_t numbers = rows.shape.rows * kElemsOfBlock<S>;
    check_operands(contract, x.sum, numbers, scratch);
    check_operands(contract, x.max, numbers, scratch);
    if (update) {
        check_operands(contract, x.factor, rows.shape.rows * kElemsOfBlock<T>, scratch);
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

// Extents of the tensor and of the part that counts, which are the same; pieces so far with this one; parts whose means shift a row.
struct SoftMaxParams {
    uint32_t srcM, srcK, oriSrcM, oriSrcK, loopCnt, splitMeanCnt;
    float alpha;

    __aicore__ constexpr SoftMaxParams(uint32_t rows = 0, uint32_t columns = 0, uint32_t counting_rows = 0, uint32_t counting_columns = 0,
                                       uint32_t loops = 1, uint32_t parts = 8, float weight = 0.9375f)
        : srcM(rows), srcK(columns), oriSrcM(counting_rows), oriSrcK(counting_columns), loopCnt(loops), splitMeanCnt(parts), alpha(weight) {}
};

namespace composed_calls {

struct ShiftedTensors {
    LocalTensor<half> dst, src, factor;
    Floats mean, sum, max, meanBefore, sumBefore, maxBefore;
};

// Parts of a row with means of their own, which are repeats as well: eight data blocks make one.
constexpr uint32_t kMeanParts = 8;

inline uint64_t shifted_floats(uint32_t rows, uint32_t columns) {
    return uint64_t{rows} * (columns + kFloatsOfRepeat + 4 * kFloatsOfBlock + 1);
}

inline void check_shifted(const ShiftedTensors &x, const SoftMaxParams &params, const LocalTensor<uint8_t> &scratch, bool update) {
    constexpr ComposedCall call = ComposedCall::SoftmaxFlashV3;
    constexpr LibraryContract contract = LibraryContract::SoftmaxFlashV3;
    constexpr uint32_t least_columns = 512, unit_columns = 64, unit_rows = 8;
    asim::check_matrix(call, {params.srcM, params.srcK});
    asim::check_demand(call, Demand::AboveZero, params.srcM, 0, Quantity::SrcM);
    asim::check_demand(call, Demand::Multiple, params.srcM, unit_rows, Quantity::SrcM);
    asim::check_demand(call, Demand::Least, params.srcK, least_columns, Quantity::SrcK);
    asim::check_demand(call, Demand::Multiple, params.srcK, unit_columns, Quantity::SrcK);
    asim::check_demand(call, Demand::Equal, params.oriSrcM, params.srcM, Quantity::OriSrcM);
    asim::check_demand(call, Demand::Equal, params.oriSrcK, params.srcK, Quantity::OriSrcK);
    asim::check_demand(call, Demand::Equal, params.splitMeanCnt, kMeanParts, Quantity::SplitMeanCnt);
    const uint32_t numbers = params.srcM * kFloatsOfBlock;
    check_operands(contract, x.dst, params.srcM * params.srcK, scratch, x.src);
    if (update) {
        asim::check_demand(call, Demand::AboveZero, params.loopCnt, 0, Quantity::LoopCnt);
        check_operands(contract, x.factor, params.srcM * kElemsOfBlock<half>, scratch);
        check_operands(contract, x.mean, numbers, scratch, x.meanBefore);
        check_operands(contract, x.sum, numbers, scratch, x.sumBefore);
        check_operands(contract, x.max, numbers, scratch, x.maxBefore);
    } else {
        for (const Floats &each : {x.mean, x.sum, x.max}) check_operands(contract, each, numbers, scratch);
    }
}

// Means of rows as data blocks. `shifts` are those of parts of rows less that, a data block a row. As the page has it, part i adds up the i-th repeat of
// a row, and from the ninth repeat on the i-th data block of each.
inline void means_of_rows(const Floats &means, const Floats &shifts, const Floats &wide, const Floats &folded, const Floats &numbers, uint32_t rows,
                          uint32_t columns) {
    constexpr int32_t lanes = kFloatsOfRepeat;
    const uint32_t further = columns / kFloatsOfRepeat - kMeanParts;
    const Steps<float> blocks(rows * kFloatsOfBlock);
    for (uint32_t row = 0; row < rows; ++row) BlockReduceSum(folded[row * kFloatsOfRepeat], wide[row * columns], int32_t{kMeanParts}, lanes, 1, 1, 8);
    PipeBarrier<PIPE_V>();
    for (uint32_t row = 0; row < rows && further > 0; ++row) {
        const Floats fold = folded[row * kFloatsOfRepeat];
        Add(fold, wide[row * columns + kMeanParts * kFloatsOfRepeat], fold, uint64_t{kFloatsOfRepeat}, static_cast<uint8_t>(further), {1, 1, 1, 0, 8, 0});
    }
    PipeBarrier<PIPE_V>();
    BlockReduceSum(shifts, folded, static_cast<int32_t>(rows), lanes, 1, 1, 8);
    PipeBarrier<PIPE_V>();
    blocks.muls(shifts, shifts, 1.0f / static_cast<float>(static_cast<int32_t>(columns / kMeanParts)));
    BlockReduceSum(numbers, shifts, static_cast<int32_t>(rows / kFloatsOfBlock), lanes, 1, 1, 8);
    PipeBarrier<PIPE_V>();
    Steps<float>(rows).muls(numbers, numbers, 1.0f / kMeanParts);
    to_row_blocks(means, numbers, rows);
    blocks.sub(shifts, shifts, means);
}

inline void maxima_of_rows(const Floats &maxima, const Floats &wide, const Floats &folded, const Floats &numbers, uint32_t rows, uint32_t columns) {
    for (uint32_t row = 0; row < rows; ++row) {
        const Floats fold = folded[row * kFloatsOfRepeat], from = wide[row * columns];
        Max(fold, from[kFloatsOfRepeat], from, uint64_t{kFloatsOfRepeat}, 1, BinaryRepeatParams{});
        PipeBarrier<PIPE_V>();
        Max(fold, from[2 * kFloatsOfRepeat], fold, uint64_t{kFloatsOfRepeat}, static_cast<uint8_t>(columns / kFloatsOfRepeat - 2), {1, 1, 1, 0, 8, 0});
    }
    PipeBarrier<PIPE_V>();
    WholeReduceMax(numbers, folded, static_cast<int32_t>(kFloatsOfRepeat), static_cast<int32_t>(rows), 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);
    PipeBarrier<PIPE_V>();
    to_row_blocks(maxima, numbers, rows);
}

}  // namespace composed_calls

// Exponentials of rows that come in pieces, whose parts are shifted by their means.
template <typename T, typename U, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig &config = SOFTMAX_DEFAULT_CFG>
__aicore__ inline void SoftmaxFlashV3(const LocalTensor<T> &dstTensor, const LocalTensor<U> &meanTensor, const LocalTensor<U> &expSumTensor,
                                      const LocalTensor<U> &maxTensor, const LocalTensor<T> &srcTensor, const LocalTensor<T> &expMaxTensor,
                                      const LocalTensor<U> &inMeanTensor, const LocalTensor<U> &inExpSumTensor, const LocalTensor<U> &inMaxTensor,
                                      const LocalTensor<uint8_t> &sharedTmpBuffer, const SoftMaxTiling &, const SoftMaxParams &params) {
    using namespace composed_calls;
    static_assert(std::is_same_v<T, half> && std::is_same_v<U, float> && !isDataFormatNZ, "SoftmaxFlashV3 takes ND tensors of half and numbers of float");
    const ShiftedTensors x{dstTensor, srcTensor, expMaxTensor, meanTensor, expSumTensor, maxTensor, inMeanTensor, inExpSumTensor, inMaxTensor};
    check_shifted(x, params, sharedTmpBuffer, isUpdate);
    constexpr uint32_t unit_rows = kFloatsOfBlock, most_rows = MAX_REPEAT_TIMES / unit_rows * unit_rows;
    const uint32_t columns = params.srcK;
    const uint64_t unit_bytes = shifted_floats(unit_rows, columns) * sizeof(float), fitting = sharedTmpBuffer.GetSize() / unit_bytes * unit_rows;
    asim::check_scratch(ComposedCall::SoftmaxFlashV3, bytes_of(sharedTmpBuffer), unit_bytes);
    const float scale = params.alpha / (1.0f - params.alpha), loops = static_cast<float>(static_cast<int32_t>(params.loopCnt));
    in_rounds(params.srcM, static_cast<uint32_t>(fitting < most_rows ? fitting : most_rows), [&](uint32_t done, uint32_t rows) {
        ScratchFloats left(sharedTmpBuffer);
        const uint32_t count = rows * columns, numbers_elems = rows * kFloatsOfBlock, at = done * kFloatsOfBlock;
        const Floats wide = left.take(count), folded = left.take(rows * kFloatsOfRepeat), numbers = left.take(rows);
        const Floats mean = left.take(numbers_elems), shift = left.take(numbers_elems), most = left.take(numbers_elems), spare = left.take(numbers_elems);
        const Steps<float> blocks(numbers_elems);
        Steps<float>(count).cast(wide, x.src[done * columns]);
        means_of_rows(mean, shift, wide, folded, numbers, rows, columns);
        blocks.muls(shift, shift, scale);
        to_row_blocks(folded, shift, rows * kMeanParts);
        by_row(wide, wide, folded, rows * kMeanParts, columns / kMeanParts, false);
        maxima_of_rows(most, wide, folded, numbers, rows, columns);
        if constexpr (isUpdate) {
            blocks.muls(spare, x.meanBefore[at], loops - 1.0f);
            blocks.add(spare, spare, mean);
            blocks.muls(spare, spare, 1.0f / loops);                // the mean of all pieces
            blocks.sub(shift, x.meanBefore[at], spare);
            blocks.sub(mean, mean, spare);
            blocks.muls(x.mean[at], spare, 1.0f);
            blocks.muls(shift, shift, scale);                       // that of the pieces before
            blocks.muls(mean, mean, scale);                         // and of this one
            blocks.add(shift, shift, x.maxBefore[at]);
            blocks.add(most, most, mean);
            blocks.max(most, most, shift);
            blocks.sub(shift, shift, most);
            blocks.exp(shift, shift);
            blocks.muls(x.max[at], most, 1.0f);
            blocks.sub(most, most, mean);
        } else {
            blocks.muls(x.mean[at], mean, 1.0f);
            blocks.muls(x.max[at], most, 1.0f);
        }
        with_row_blocks(wide, wide, RowBlocks{most, 1}, rows, columns, [](const Floats &to, const Floats &from, const Floats &block, const auto &repeats) {
            Sub<float, false>(to, from, block, kRegisterMask, 1, repeats);
        });
        Steps<float>(count).exp(wide, wide);
        Steps<half>(count).cast(x.dst[done * columns], wide, RoundMode::CAST_ROUND);
        sums_to_blocks(spare, numbers, wide, rows, columns);
        if constexpr (isUpdate) {
            blocks_in_half(x.factor[done * kElemsOfBlock<half>], shift, rows);
            blocks.mul(shift, shift, x.sumBefore[at]);
            blocks.add(x.sum[at], spare, shift);
        } else {
            blocks.muls(x.sum[at], spare, 1.0f);
        }
    });
}
template <typename T, typename U, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig &config = SOFTMAX_DEFAULT_CFG>
__aicore__ inline void SoftmaxFlashV3(const LocalTensor<T> &dstTensor, const LocalTensor<U> &meanTensor, const LocalTensor<U> &expSumTensor,
                                      const LocalTensor<U> &maxTensor, const LocalTensor<T> &srcTensor, const LocalTensor<T> &expMaxTensor,
                                      const LocalTensor<U> &inMeanTensor, const LocalTensor<U> &inExpSumTensor, const LocalTensor<U> &inMaxTensor,
                                      const SoftMaxTiling &tiling, const SoftMaxParams &params) {
    SoftmaxFlashV3<T, U, isUpdate, isReuseSource, isBasicBlock, isDataFormatNZ, config>(
        dstTensor, meanTensor, expSumTensor, maxTensor, srcTensor, expMaxTensor, inMeanTensor, inExpSumTensor, inMaxTensor,
        composed_calls::free_scratch(), tiling, params);
}

}  // namespace AscendC
