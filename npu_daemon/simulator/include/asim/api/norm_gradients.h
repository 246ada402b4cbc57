// LayerNormGrad, LayerNormGradBeta and BatchNorm of ND tensors. Compositions of our own by the formulas of their pages, in float.
#pragma once
#include "asim/api/layer_norm.h"
#include "asim/api/log_softmax.h"
#include "asim/api/vector_gather.h"

struct alignas(8) LayerNormGradTiling {
    uint32_t stackBufferSize, bLength, sLength, hLength, originalHLength;
};
struct alignas(8) LayerNormGradBetaTiling {
    uint32_t stackBufferSize, bLength, sLength, hLength, originalHLength;
};
struct alignas(8) BatchNormTiling {
    uint32_t originalBLength, bLength, sLength, hLength, tmpBufSize;
    float firstDimValueBack;
};
namespace AscendC::tiling {
using ::BatchNormTiling;
using ::LayerNormGradBetaTiling;
using ::LayerNormGradTiling;
}

namespace AscendC {

struct LayerNormGradShapeInfo {
    DataFormat dataFormat = DataFormat::ND;
};

namespace composed_calls {

using Floats = LocalTensor<float>;

// Tensors of float one after another in a scratch buffer, from data block to data block.
class ScratchFloats {
public:
    explicit ScratchFloats(const LocalTensor<uint8_t> &scratch) : rest_(scratch.template ReinterpretCast<float>()) {}
    Floats take(uint32_t elems) {
        const uint32_t whole = (elems + kFloatsOfBlock - 1) / kFloatsOfBlock * kFloatsOfBlock;
        const Floats taken = rest_;
        rest_ = rest_[whole];
        return taken;
    }
    Floats rest() const { return rest_; }

private:
    Floats rest_;
};

inline uint32_t whole_eights(uint32_t rows) { return (rows + kFloatsOfBlock - 1) / kFloatsOfBlock * kFloatsOfBlock; }

// The number of each row as a data block; eight rows with each repeat.
inline void to_row_blocks(const Floats &blocks, const Floats &numbers, uint32_t rows) {
    Brcb(blocks, numbers, static_cast<uint8_t>(whole_eights(rows) / kFloatsOfBlock), BrcbRepeatParams{1, 8});
    PipeBarrier<PIPE_V>();
}

// The sums of rows as data blocks; the rows are folded.
inline void sums_to_blocks(const Floats &blocks, const Floats &sums, const Floats &rows_folded, uint32_t rows, uint32_t columns) {
    sum_rows(sums, sums, rows_folded, rows, columns);
    to_row_blocks(blocks, sums, rows);
}

inline void by_row(const Floats &dst, const Floats &src, const Floats &blocks, uint32_t rows, uint32_t columns, bool multiply) {
    with_row_blocks(dst, src, RowBlocks{blocks, 1}, rows, columns, [&](const Floats &to, const Floats &from, const Floats &block, const auto &params) {
        if (multiply) Mul<float, false>(to, from, block, kRegisterMask, 1, params);
        else Add<float, false>(to, from, block, kRegisterMask, 1, params);
    });
}

template <typename T>
Floats in_float(const LocalTensor<T> &values, const Floats &place, uint32_t count) {
    if constexpr (std::is_same_v<T, float>) {
        Steps<float>(count).muls(place, values, 1.0f);
    } else {
        Steps<float>(count).cast(place, values);
    }
    return place;
}

template <typename T>
void out_of_float(const LocalTensor<T> &dst, const Floats &values, uint32_t count) {
    if constexpr (std::is_same_v<T, float>) Steps<float>(count).muls(dst, values, 1.0f);
    else Steps<half>(count).cast(dst, values);
}

template <typename T>
void check_gradient(ComposedCall call, uint32_t rows, uint32_t columns) {
    require_math_type<T>();
    asim::check_matrix(call, {rows, columns});
    asim::check_demand(call, Demand::AboveZero, rows, 0);
    asim::check_demand(call, Demand::AboveZero, columns, 0, Quantity::HLength);
    asim::check_demand(call, Demand::WholeBlocks, columns * static_cast<uint32_t>(sizeof(T)), 0);
    asim::check_demand(call, Demand::Most, columns, kMostFoldedColumns, Quantity::HLength);
}

// What LayerNormGrad keeps of rows at hand: three times the rows, and numbers of rows.
constexpr uint32_t kGradientMatrices = 3, kGradientBlocks = 4;
inline uint64_t gradient_floats(uint32_t rows, uint32_t columns) {
    const uint64_t eights = whole_eights(rows);
    return uint64_t{columns} * (uint64_t{kGradientMatrices} * rows + 1) + eights * (kFloatsOfBlock * kGradientBlocks + 1);
}

}  // namespace composed_calls

template <typename T, bool isReuseSource = false>
__aicore__ inline void LayerNormGrad(const LocalTensor<T> &outputPdX, const LocalTensor<T> &resForGamma, const LocalTensor<T> &inputDy,
                                     const LocalTensor<T> &inputX, const LocalTensor<T> &inputVariance, const LocalTensor<T> &inputMean,
                                     const LocalTensor<T> &inputGamma, const LocalTensor<uint8_t> &sharedTmpBuffer, T epsilon,
                                     const LayerNormGradTiling &tiling, const LayerNormGradShapeInfo &shapeInfo = {}) {
    using namespace composed_calls;
    constexpr ComposedCall call = ComposedCall::LayerNormGrad;
    const uint32_t all_rows = tiling.bLength * tiling.sLength, columns = tiling.hLength;
    check_gradient<T>(call, all_rows, columns);
    asim::check_demand(call, Demand::Equal, static_cast<uint32_t>(shapeInfo.dataFormat), static_cast<uint32_t>(DataFormat::ND));
    constexpr uint32_t unit = asim::kUbBlockBytes / sizeof(T);      // rows whose numbers fill a data block
    const uint64_t floats = sharedTmpBuffer.GetSize() / sizeof(float);
    uint32_t at_once = all_rows < unit ? all_rows : unit;
    asim::check_scratch(call, bytes_of(sharedTmpBuffer), gradient_floats(at_once, columns) * sizeof(float));
    while (at_once + unit <= all_rows && at_once + unit <= MAX_REPEAT_TIMES && gradient_floats(at_once + unit, columns) <= floats) at_once += unit;
    const float reciprocal = 1.0f / static_cast<float>(static_cast<int32_t>(columns));
    in_rounds(all_rows, at_once, [&](uint32_t done, uint32_t rows) {
        ScratchFloats scratch(sharedTmpBuffer);
        const uint32_t count = rows * columns, eights = whole_eights(rows), first = done * columns;
        const Floats x1 = scratch.take(count), x2 = scratch.take(count), work = scratch.take(count), gamma = scratch.take(columns);
        const Floats numbers = scratch.take(eights);
        const Floats deviation = scratch.take(eights * kFloatsOfBlock), variance_part = scratch.take(eights * kFloatsOfBlock);
        const Floats mean_part = scratch.take(eights * kFloatsOfBlock), spare = scratch.take(eights * kFloatsOfBlock);
        const Steps<float> all(count), blocks(eights * kFloatsOfBlock), row_numbers(rows);
        in_float(inputDy[first], x1, count);
        in_float(inputGamma, gamma, columns);
        affine_rows(x1, x1, gamma, rows, columns, false);                   // x1 = dy * gamma
        in_float(inputX[first], x2, count);
        in_float(inputMean[done], numbers, rows);
        row_numbers.muls(numbers, numbers, -1.0f);
        to_row_blocks(spare, numbers, rows);
        by_row(x2, x2, spare, rows, columns, false);                        // x2 = x - mean
        in_float(inputVariance[done], numbers, rows);
        row_numbers.adds(numbers, numbers, static_cast<float>(epsilon));
        row_numbers.sqrt(numbers, numbers);
        to_row_blocks(deviation, numbers, rows);
        blocks.fill(spare, 1.0f);
        blocks.div(deviation, spare, deviation);                            // 1 / sqrt(variance + epsilon)
        all.mul(work, x1, x2);
        sums_to_blocks(variance_part, numbers, work, rows, columns);
        blocks.mul(spare, deviation, deviation);
        blocks.mul(spare, spare, deviation);
        blocks.mul(variance_part, variance_part, spare);
        blocks.muls(variance_part, variance_part, -0.5f);                   // pd_var
        all.muls(work, x2, -2.0f);
        sums_to_blocks(mean_part, numbers, work, rows, columns);
        blocks.mul(mean_part, mean_part, variance_part);
        blocks.muls(mean_part, mean_part, reciprocal);
        all.muls(work, x1, -1.0f);
        sums_to_blocks(spare, numbers, work, rows, columns);
        blocks.mul(spare, spare, deviation);
        blocks.add(mean_part, mean_part, spare);                            // pd_mean
        by_row(x1, x1, deviation, rows, columns, true);
        by_row(work, x2, deviation, rows, columns, true);
        out_of_float(resForGamma[first], work, count);
        blocks.muls(variance_part, variance_part, 2.0f * reciprocal);
        by_row(x2, x2, variance_part, rows, columns, true);
        all.add(x1, x1, x2);
        blocks.muls(mean_part, mean_part, reciprocal);
        by_row(x1, x1, mean_part, rows, columns, false);
        out_of_float(outputPdX[first], x1, count);
    });
}
template <typename T, bool isReuseSource = false>
__aicore__ inline void LayerNormGrad(const LocalTensor<T> &outputPdX, const LocalTensor<T> &resForGamma, const LocalTensor<T> &inputDy,
                                     const LocalTensor<T> &inputX, const LocalTensor<T> &inputVariance, const LocalTensor<T> &inputMean,
                                     const LocalTensor<T> &inputGamma, T epsilon, const LayerNormGradTiling &tiling,
                                     const LayerNormGradShapeInfo &shapeInfo = {}) {
    LayerNormGrad<T, isReuseSource>(outputPdX, resForGamma, inputDy, inputX, inputVariance, inputMean, inputGamma, composed_calls::free_scratch(),
                                    epsilon, tiling, shapeInfo);
}

// Sums over rows of dy * resForGamma, and of dy.
template <typename T, bool isReuseSource = false>
__aicore__ inline void LayerNormGradBeta(const LocalTensor<T> &outputPdGamma, const LocalTensor<T> &outputPdBeta, const LocalTensor<T> &resForGamma,
                                         const LocalTensor<T> &inputDy, const LocalTensor<uint8_t> &sharedTmpBuffer,
                                         const LayerNormGradBetaTiling &tiling) {
    using namespace composed_calls;
    constexpr ComposedCall call = ComposedCall::LayerNormGradBeta;
    const uint32_t rows = tiling.bLength * tiling.sLength, columns = tiling.hLength;
    check_gradient<T>(call, rows, columns);
    asim::check_scratch(call, bytes_of(sharedTmpBuffer), uint64_t{4} * columns * sizeof(float));
    ScratchFloats scratch(sharedTmpBuffer);
    const Floats gamma = scratch.take(columns), beta = scratch.take(columns), dy = scratch.take(columns), res = scratch.take(columns);
    const Steps<float> row(columns);
    row.fill(gamma, 0.0f);
    row.fill(beta, 0.0f);
    for (uint32_t i = 0; i < rows; ++i) {
        in_float(inputDy[i * columns], dy, columns);
        in_float(resForGamma[i * columns], res, columns);
        row.add(beta, beta, dy);
        row.mul(res, res, dy);
        row.add(gamma, gamma, res);
    }
    out_of_float(outputPdGamma, gamma, columns);
    out_of_float(outputPdBeta, beta, columns);
}
template <typename T, bool isReuseSource = false>
__aicore__ inline void LayerNormGradBeta(const LocalTensor<T> &outputPdGamma, const LocalTensor<T> &outputPdBeta, const LocalTensor<T> &resForGamma,
                                         const LocalTensor<T> &inputDy, const LayerNormGradBetaTiling &tiling) {
    LayerNormGradBeta<T, isReuseSource>(outputPdGamma, outputPdBeta, resForGamma, inputDy, composed_calls::free_scratch(), tiling);
}

// Over the first axis of [B, S * H]; gamma and beta have a number for each of B.
template <typename T, bool isReuseSource = false, bool isBasicBlock = false>
__aicore__ inline void BatchNorm(const LocalTensor<T> &output, const LocalTensor<T> &outputMean, const LocalTensor<T> &outputVariance,
                                 const LocalTensor<T> &inputX, const LocalTensor<T> &gamm, const LocalTensor<T> &beta,
                                 const LocalTensor<uint8_t> &sharedTmpBuffer, const T epsilon, const BatchNormTiling &tiling) {
    using namespace composed_calls;
    constexpr ComposedCall call = ComposedCall::BatchNorm;
    const uint32_t batches = tiling.originalBLength, columns = tiling.sLength * tiling.hLength;
    require_math_type<T>();
    asim::check_matrix(call, {batches, columns});
    asim::check_demand(call, Demand::AboveZero, batches, 0);
    asim::check_demand(call, Demand::AboveZero, columns, 0);
    asim::check_demand(call, Demand::WholeBlocks, columns * static_cast<uint32_t>(sizeof(T)), 0);
    const uint32_t eights = whole_eights(batches);
    asim::check_scratch(call, bytes_of(sharedTmpBuffer), (uint64_t{3} * columns + uint64_t{eights} * (2 * kFloatsOfBlock + 1)) * sizeof(float));
    ScratchFloats scratch(sharedTmpBuffer);
    const Floats mean = scratch.take(columns), variance = scratch.take(columns), work = scratch.take(columns), numbers = scratch.take(eights);
    const Floats factors = scratch.take(eights * kFloatsOfBlock), terms = scratch.take(eights * kFloatsOfBlock);
    const Steps<float> row(columns);
    in_float(gamm, numbers, batches);
    to_row_blocks(factors, numbers, batches);
    in_float(beta, numbers, batches);
    to_row_blocks(terms, numbers, batches);
    row.fill(mean, 0.0f);
    row.fill(variance, 0.0f);
    for (uint32_t b = 0; b < batches; ++b) {
        in_float(inputX[b * columns], work, columns);
        row.muls(work, work, tiling.firstDimValueBack);
        row.add(mean, mean, work);
    }
    for (uint32_t b = 0; b < batches; ++b) {
        in_float(inputX[b * columns], work, columns);
        row.sub(work, work, mean);
        row.mul(work, work, work);
        row.muls(work, work, tiling.firstDimValueBack);
        row.add(variance, variance, work);
    }
    out_of_float(outputMean, mean, columns);
    out_of_float(outputVariance, variance, columns);
    row.adds(variance, variance, static_cast<float>(epsilon));
    row.sqrt(variance, variance);
    for (uint32_t b = 0; b < batches; ++b) {
        in_float(inputX[b * columns], work, columns);
        row.sub(work, work, mean);
        row.div(work, work, variance);
        by_row(work, work, factors[b * kFloatsOfBlock], 1, columns, true);
        by_row(work, work, terms[b * kFloatsOfBlock], 1, columns, false);
        out_of_float(output[b * columns], work, columns);
    }
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false>
__aicore__ inline void BatchNorm(const LocalTensor<T> &output, const LocalTensor<T> &outputMean, const LocalTensor<T> &outputVariance,
                                 const LocalTensor<T> &inputX, const LocalTensor<T> &gamm, const LocalTensor<T> &beta, const T epsilon,
                                 const BatchNormTiling &tiling) {
    BatchNorm<T, isReuseSource, isBasicBlock>(output, outputMean, outputVariance, inputX, gamm, beta, composed_calls::free_scratch(), epsilon, tiling);
}

}  // namespace AscendC
