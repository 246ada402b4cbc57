// LayerNorm of rows [B, S, H], and what other normalizations share with it (asc-devkit, adv_api/detail/normalization).
#pragma once
#include "asim/api/data_copy.h"
#include "asim/api/library_steps.h"
#include "asim/api/library_tiling.h"
#include "asim/api/vector_reduce.h"

namespace AscendC {

struct LayerNormConfig {
    bool isNoBeta = false;
    bool isNoGamma = false;
    bool isOnlyOutput = false;
    bool isOutputRstd = true;
};
constexpr LayerNormConfig LNCFG_NORM = {false, false, false};
constexpr LayerNormConfig LNCFG_NOBETA = {true, false, false};
constexpr LayerNormConfig LNCFG_NOGAMMA = {false, true, false};
constexpr LayerNormConfig LNCFG_NOOPT = {true, true, false};

struct LayerNormPara {
    uint32_t aLength;
    uint32_t rLength;
    uint32_t rLengthWithPadding;
};

namespace composed_calls {

// Floats of a row that one instruction folds: a repeat for each but the first, and what is left of a repeat.
constexpr uint32_t kMostFoldedColumns = (MAX_REPEAT_TIMES + 2) * kFloatsOfRepeat - 1;

// The sum of each row at the row's first element of `spread`, and one after another in `sums`; the rows of `src` are folded.
inline void sum_rows(const LocalTensor<float> &spread, const LocalTensor<float> &sums, const LocalTensor<float> &src,
                     uint32_t rows, uint32_t columns) {
    const uint32_t whole = columns / kFloatsOfRepeat, rest = columns % kFloatsOfRepeat;
    const BinaryRepeatParams fold{1, 1, 1, 0, 8, 0};
    for (uint32_t row = 0; row < rows && columns > kFloatsOfRepeat; ++row) {
        const LocalTensor<float> head = src[row * columns];
        if (whole > 1) {
            Add(head, head[kFloatsOfRepeat], head, uint64_t{kFloatsOfRepeat}, static_cast<uint8_t>(whole - 1), fold);
            PipeBarrier<PIPE_V>();
        }
        if (rest > 0) Add(head, head[whole * kFloatsOfRepeat], head, uint64_t{rest}, 1, fold);
    }
    PipeBarrier<PIPE_V>();
    const int32_t lanes = static_cast<int32_t>(columns < kFloatsOfRepeat ? columns : kFloatsOfRepeat);
    const auto stride = static_cast<int32_t>(columns / kFloatsOfBlock);
    in_rounds(rows, MAX_REPEAT_TIMES, [&](uint32_t done, uint32_t number) {
        const auto repeats = static_cast<int32_t>(number);
        WholeReduceSum(sums[done], src[done * columns], lanes, repeats, 1, 1, stride);
        if (spread.bytes() == sums.bytes()) return;
        WholeReduceSum(spread[done * columns], src[done * columns], lanes, repeats, static_cast<int32_t>(columns), 1, stride);
    });
    PipeBarrier<PIPE_V>();
}

// Each row of `dst` filled with the first element of the row of `src`, by the scalar of the comparison register; the first
// elements of `src` become the empty selection mask.
inline void spread_rows(const LocalTensor<float> &dst, const LocalTensor<float> &src, uint32_t rows, uint32_t columns) {
    counted(columns, [&] {
        const LocalTensor<int16_t> mask = src.template ReinterpretCast<int16_t>();
        SetCmpMask(src);
        PipeBarrier<PIPE_V>();
        Muls<int16_t, false>(mask, mask, int16_t{0}, kRegisterMask, 1, UnaryRepeatParams{});
        PipeBarrier<PIPE_V>();
        for (uint32_t row = 0; row < rows; ++row) {
            if (row > 0) SetCmpMask(src[row * columns]);
            PipeBarrier<PIPE_V>();
            Select<float, uint16_t>(dst[row * columns], mask.template ReinterpretCast<uint16_t>(), dst, 1, BinaryRepeatParams{});
        }
        PipeBarrier<PIPE_V>();
    });
}

template <typename T>
struct NormOperands {
    LocalTensor<T> output, input, gamma, beta;
    LocalTensor<float> mean, variance;      // of the rows at hand
};

// Three times the rows at hand.
struct NormScratch {
    LocalTensor<float> a, b, c;
};

// (x - mean) / sqrt(variance + epsilon), in c.
inline void normalize_rows(const LocalTensor<float> &x, const LocalTensor<float> &mean, const LocalTensor<float> &variance,
                           const NormScratch &tmp, float epsilon, float reciprocal, uint32_t rows, uint32_t columns) {
    const Steps<float> all(rows * columns);
    all.muls(tmp.c, x, reciprocal);
    sum_rows(tmp.b, mean, tmp.c, rows, columns);
    spread_rows(tmp.c, tmp.b, rows, columns);
    all.sub(tmp.b, x, tmp.c);
    all.mul(tmp.c, tmp.b, tmp.b);
    all.muls(tmp.a, tmp.c, reciprocal);
    sum_rows(tmp.c, variance, tmp.a, rows, columns);
    spread_rows(tmp.a, tmp.c, rows, columns);
    all.adds(tmp.c, tmp.a, epsilon);
    all.sqrt(tmp.a, tmp.c);
    Steps<float>(kFloatsOfBlock).fill(tmp.c, 1.0f);
    counted(rows * columns,
            [&] { Div<float, false>(tmp.a, tmp.c, tmp.a, kRegisterMask, 1, BinaryRepeatParams{1, 0, 1, 8, 0, 8}); });
    PipeBarrier<PIPE_V>();
    all.mul(tmp.c, tmp.a, tmp.b);
}

// dst = rows * gamma + beta, with `work` for the products.
inline void affine_rows(const LocalTensor<float> &dst, const LocalTensor<float> &src, const LocalTensor<float> &factors,
                        uint32_t rows, uint32_t columns, bool add) {
    const auto count = static_cast<int32_t>(columns);
    for (uint32_t offset = 0; offset < rows * columns; offset += columns) {
        if (add) Add(dst[offset], src[offset], factors, count);
        else Mul(dst[offset], src[offset], factors, count);
    }
    PipeBarrier<PIPE_V>();
}

// output = c * gamma + beta, of the normalized rows in c.
template <typename T>
void finish_rows(const LocalTensor<T> &output, const LocalTensor<T> &gamma, const LocalTensor<T> &beta, const NormScratch &tmp,
                 uint32_t rows, uint32_t columns) {
    if constexpr (std::is_same_v<T, half>) {
        Steps<float>(columns).cast(tmp.a, gamma);
        affine_rows(tmp.b, tmp.c, tmp.a, rows, columns, false);
        Steps<float>(columns).cast(tmp.c, beta);
        affine_rows(tmp.a, tmp.b, tmp.c, rows, columns, true);
        Steps<half>(rows * columns).cast(output, tmp.a);
    } else {
        affine_rows(tmp.a, tmp.c, gamma, rows, columns, false);
        affine_rows(output, tmp.a, beta, rows, columns, true);
    }
}

template <typename T>
void layer_norm_rows(const NormOperands<T> &operands, const NormScratch &tmp, float epsilon, float reciprocal, uint32_t rows,
                     uint32_t columns) {
    LocalTensor<float> x;
    if constexpr (std::is_same_v<T, half>) Steps<float>(rows * columns).cast(x = tmp.a, operands.input);
    else x = operands.input;
    normalize_rows(x, operands.mean, operands.variance, tmp, epsilon, reciprocal, rows, columns);
    finish_rows(operands.output, operands.gamma, operands.beta, tmp, rows, columns);
}

// `Tiling` is LayerNormTiling or DeepNormTiling: the scratch buffer holds what the plan places there.
template <typename T, typename Tiling>
void check_layer_norm(ComposedCall call, const LocalTensor<uint8_t> &scratch, const Tiling &tiling) {
    require_math_type<T>();
    asim::check_matrix(call, {tiling.bLength, tiling.sLength});
    asim::check_matrix(call, {tiling.bLength * tiling.sLength, tiling.hLength});
    asim::check_demand(call, Demand::AboveZero, tiling.hLength, 0, Quantity::HLength);
    asim::check_demand(call, Demand::WholeBlocks, tiling.hLength * static_cast<uint32_t>(sizeof(T)), 0);
    asim::check_demand(call, Demand::Most, tiling.hLength, kMostFoldedColumns, Quantity::HLength);
    asim::check_demand(call, Demand::Least, tiling.inputRoundSize, tiling.hLength, Quantity::InputRoundSize);
    uint64_t floats = 0;
    for (const uint32_t place : {tiling.firstTmpStartPos, tiling.secondTmpStartPos, tiling.thirdTmpStartPos}) {
        const uint64_t end = uint64_t{place} + tiling.inputRoundSize;
        if (end > floats) floats = end;
    }
    for (const uint32_t place : {tiling.meanTmpTensorPos, tiling.varianceTmpTensorPos}) {
        const uint64_t end = uint64_t{place} + tiling.bLength * tiling.sLength;
        if (std::is_same_v<T, half> && end > floats) floats = end;
    }
    asim::check_scratch(call, bytes_of(scratch), floats * sizeof(float));
}

template <typename T>
void layer_norm(const NormOperands<T> &whole, const LocalTensor<T> &mean, const LocalTensor<T> &variance,
                const LocalTensor<uint8_t> &scratch, T epsilon, const LayerNormTiling &tiling) {
    const LocalTensor<float> base = scratch.template ReinterpretCast<float>();
    NormOperands<T> part = whole;
    LocalTensor<float> means, variances;
    if constexpr (std::is_same_v<T, half>) means = base[tiling.meanTmpTensorPos], variances = base[tiling.varianceTmpTensorPos];
    else means = mean, variances = variance;
    const NormScratch tmp{base[tiling.firstTmpStartPos], base[tiling.secondTmpStartPos], base[tiling.thirdTmpStartPos]};
    const uint32_t rows = tiling.bLength * tiling.sLength, columns = tiling.hLength;
    in_rounds(rows, tiling.inputRoundSize / columns, [&](uint32_t done, uint32_t number) {
        part.input = whole.input[done * columns];
        part.output = whole.output[done * columns];
        part.mean = means[done];
        part.variance = variances[done];
        layer_norm_rows(part, tmp, static_cast<float>(epsilon), tiling.lastDimValueBack, number, columns);
    });
    if constexpr (std::is_same_v<T, half>) {
        Steps<half>(rows).cast(mean, means);
        Steps<half>(rows).cast(variance, variances);
    }
}

}  // namespace composed_calls

template <typename T, bool isReuseSource = false>
__aicore__ inline void LayerNorm(const LocalTensor<T> &output, const LocalTensor<T> &outputMean,
                                 const LocalTensor<T> &outputVariance, const LocalTensor<T> &inputX, const LocalTensor<T> &gamma,
                                 const LocalTensor<T> &beta, const LocalTensor<uint8_t> &sharedTmpBuffer, const T epsilon,
                                 const LayerNormTiling &tiling) {
    composed_calls::check_layer_norm<T>(composed_calls::ComposedCall::LayerNorm, sharedTmpBuffer, tiling);
    const uint64_t rows = uint64_t{tiling.bLength} * tiling.sLength;
    for (const LocalTensor<T> &numbers : {outputMean, outputVariance}) {
        asim::check_operands(asim::LibraryContract::LayerNorm, numbers.bytes(), rows * sizeof(T), inputX.bytes(), rows * tiling.hLength * sizeof(T));
    }
    composed_calls::layer_norm<T>({output, inputX, gamma, beta, {}, {}}, outputMean, outputVariance, sharedTmpBuffer, epsilon,
                                  tiling);
}
template <typename T, bool isReuseSource = false>
__aicore__ inline void LayerNorm(const LocalTensor<T> &output, const LocalTensor<T> &outputMean,
                                 const LocalTensor<T> &outputVariance, const LocalTensor<T> &inputX, const LocalTensor<T> &gamma,
                                 const LocalTensor<T> &beta, const T epsilon, const LayerNormTiling &tiling) {
    LayerNorm<T>(output, outputMean, outputVariance, inputX, gamma, beta, composed_calls::free_scratch(), epsilon, tiling);
}

}  // namespace AscendC
