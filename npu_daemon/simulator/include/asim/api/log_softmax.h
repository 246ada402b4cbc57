// LogSoftMax, SimpleSoftMax, AdjustSoftMaxRes and SoftmaxGradFront over the last axis of ND tensors (asc-devkit,
// adv_api/detail/activation/softmax).
#pragma once
#include "asim/api/library_steps.h"
#include "asim/api/library_tiling.h"
#include "asim/api/softmax_flash.h"

namespace AscendC {
namespace composed_calls {

// Numbers of rows: a data block each, or two where halves were converted.
struct RowBlocks {
    LocalTensor<float> values;
    uint32_t stride_blocks;
};

// The numbers of each row, with the row: columns of data blocks for short rows, else row by row.
template <typename Call>
void with_row_blocks(const LocalTensor<float> &dst, const LocalTensor<float> &src, const RowBlocks &blocks, uint32_t rows, uint32_t stride,
                     Call call) {
    constexpr uint32_t whole_rows = 192;
    if (stride < whole_rows) {
        const auto row_blocks = static_cast<uint8_t>(stride / kFloatsOfBlock), distance = static_cast<uint8_t>(stride);
        const auto apart = static_cast<uint8_t>(blocks.stride_blocks);
        const BinaryRepeatParams params{row_blocks, row_blocks, apart, distance, distance, static_cast<uint8_t>(8 * apart)};
        counted(rows * kFloatsOfBlock, [&] {
            for (uint32_t column = 0; column < stride; column += kFloatsOfBlock) call(dst[column], src[column], blocks.values, params);
        });
    } else {
        const BinaryRepeatParams params{1, 1, 0, 8, 8, 0};
        counted(stride, [&] {
            for (uint32_t row = 0; row < rows; ++row) {
                call(dst[row * stride], src[row * stride], blocks.values[row * blocks.stride_blocks * kFloatsOfBlock], params);
            }
        });
    }
    PipeBarrier<PIPE_V>();
}

inline void softmax_of(const LocalTensor<float> &dst, const LocalTensor<float> &src, const RowBlocks &sums, const RowBlocks &maxima,
                       uint32_t rows, uint32_t stride) {
    using Tensor = LocalTensor<float>;
    with_row_blocks(dst, src, maxima, rows, stride, [](const Tensor &to, const Tensor &from, const Tensor &blocks, const auto &params) {
        Sub<float, false>(to, from, blocks, kRegisterMask, 1, params);
    });
    Steps<float>(rows * stride).exp(dst, dst);
    with_row_blocks(dst, dst, sums, rows, stride, [](const Tensor &to, const Tensor &from, const Tensor &blocks, const auto &params) {
        Div<float, false>(to, from, blocks, kRegisterMask, 1, params);
    });
}

// Half rows in float, as many at once as the scratch buffer holds with the numbers of rows, where these are halves.
template <typename S>
void softmax_of_halves(const LocalTensor<half> &dst, const LocalTensor<half> &src, const LocalTensor<S> &sums, const LocalTensor<S> &maxima,
                       const LocalTensor<uint8_t> &scratch, uint32_t rows, uint32_t stride) {
    constexpr bool converts = std::is_same_v<S, half>;
    constexpr uint32_t block = asim::kUbBlockBytes / sizeof(S);
    const LocalTensor<float> base = scratch.template ReinterpretCast<float>();
    const uint32_t row_floats = stride + (converts ? 2 * block : 0);
    asim::check_scratch(ComposedCall::SimpleSoftMax, bytes_of(scratch), uint64_t{row_floats} * sizeof(float));
    in_rounds(rows, base.GetSize() / row_floats, [&](uint32_t done, uint32_t number) {
        const uint32_t elements = number * stride, numbers = number * block;
        RowBlocks most, total;
        if constexpr (converts) {
            most = {base[elements], 2};
            total = {base[elements + numbers], 2};
            Steps<float>(numbers).cast(most.values, maxima[done * block]);
            Steps<float>(numbers).cast(total.values, sums[done * block]);
        } else {
            most = {maxima[done * block], 1};
            total = {sums[done * block], 1};
        }
        Steps<float>(elements).cast(base, src[done * stride]);
        softmax_of(base, base, total, most, number, stride);
        Steps<half>(elements).cast(dst[done * stride], base, RoundMode::CAST_ROUND);
    });
}

}  // namespace composed_calls

// The logarithm is to the base 10, as the page says.
template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false>
__aicore__ inline void LogSoftMax(const LocalTensor<T> &dst, const LocalTensor<T> &sum, const LocalTensor<T> &max, const LocalTensor<T> &src,
                                  const LocalTensor<uint8_t> &sharedTmpBuffer, const LogSoftMaxTiling &tiling,
                                  const SoftMaxShapeInfo &softmaxShapeInfo = {}) {
    static_assert(!isDataFormatNZ, "LogSoftMax is simulated for ND tensors");
    require_math_type<T>();
    const SoftmaxRows rows = planned_rows(composed_calls::ComposedCall::LogSoftMax, tiling, softmaxShapeInfo);
    const uint32_t count = rows.shape.rows * rows.stride;
    composed_calls::check_operands(asim::LibraryContract::LogSoftMax, dst, count, sharedTmpBuffer, src);
    asim::log_softmax<T>(dst.bytes(), sum.bytes(), max.bytes(), src.bytes(), rows.shape, rows.stride, scratch_of(sharedTmpBuffer));
}

template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig &config = SOFTMAX_DEFAULT_CFG, typename S>
__aicore__ inline void SimpleSoftMax(const LocalTensor<T> &dst, const LocalTensor<S> &inSum, const LocalTensor<S> &inMax,
                                     const LocalTensor<T> &src, const LocalTensor<uint8_t> &sharedTmpBuffer, const SoftMaxTiling &tiling,
                                     const SoftMaxShapeInfo &softmaxShapeInfo = {}) {
    static_assert(!isDataFormatNZ, "SimpleSoftMax is simulated for ND tensors");
    static_assert(std::is_same_v<T, S> || (std::is_same_v<T, half> && std::is_same_v<S, float>), "sums and maxima have the type of the rows, or float");
    require_math_type<T>();
    const SoftmaxRows rows = rows_of(composed_calls::ComposedCall::SimpleSoftMax, src, tiling, softmaxShapeInfo);
    asim::check_matrix(composed_calls::ComposedCall::SimpleSoftMax, {rows.shape.rows, rows.stride});
    asim::check_demand(composed_calls::ComposedCall::SimpleSoftMax, composed_calls::Demand::WholeBlocks, rows.stride * static_cast<uint32_t>(sizeof(T)), 0);
    if constexpr (std::is_same_v<T, float>) composed_calls::softmax_of(dst, src, {inSum, 1}, {inMax, 1}, rows.shape.rows, rows.stride);
    else composed_calls::softmax_of_halves(dst, src, inSum, inMax, sharedTmpBuffer, rows.shape.rows, rows.stride);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig &config = SOFTMAX_DEFAULT_CFG, typename S>
__aicore__ inline void SimpleSoftMax(const LocalTensor<T> &dst, const LocalTensor<S> &inSum, const LocalTensor<S> &inMax,
                                     const LocalTensor<T> &src, const SoftMaxTiling &tiling, const SoftMaxShapeInfo &softmaxShapeInfo = {}) {
    SimpleSoftMax<T, isReuseSource, isBasicBlock, isDataFormatNZ, config>(dst, inSum, inMax, src, composed_calls::free_scratch(), tiling,
                                                                           softmaxShapeInfo);
}

// Rows whose maximum has the bits `from` are filled with `to`, row by row as the scalar unit finds them. Returns whether there are any.
template <typename T1, typename T2, bool isDataFormatNZ = false, uint8_t stepSizeMode = 0>
__aicore__ inline bool AdjustSoftMaxRes(const LocalTensor<T1> &softMaxRes, const LocalTensor<T2> &maxTensor, const uint32_t from, const T1 to,
                                        const SoftMaxShapeInfo &softmaxShapeInfo) {
    static_assert(!isDataFormatNZ, "AdjustSoftMaxRes is simulated for ND tensors");
    require_math_type<T1>();
    require_math_type<T2>();
    counted_rows(composed_calls::ComposedCall::AdjustSoftMaxRes, softmaxShapeInfo);
    constexpr uint32_t step = stepSizeMode == 0 ? asim::kUbBlockBytes / sizeof(T2) : 1;
    using Bits = std::conditional_t<sizeof(T2) == 2, uint16_t, uint32_t>;
    const LocalTensor<Bits> maxima = maxTensor.template ReinterpretCast<Bits>();
    bool found = false;
    composed_calls::await<HardEvent::V_S>();
    for (uint32_t row = 0; row < softmaxShapeInfo.srcM; ++row) {
        if (maxima.GetValue(row * step) != static_cast<Bits>(from)) continue;
        found = true;
        composed_calls::await<HardEvent::S_V>();
        Duplicate(softMaxRes[row * softmaxShapeInfo.srcK], to, static_cast<int32_t>(softmaxShapeInfo.srcK));
    }
    PipeBarrier<PIPE_V>();
    return found;
}

// The sums of grad * src over rows, one data block a row.
template <typename T, bool isBasicBlock = false, bool isDataFormatNZ = false>
__aicore__ inline void SoftmaxGradFront(const LocalTensor<T> &dst, const LocalTensor<T> &grad, const LocalTensor<T> &src,
                                        const LocalTensor<uint8_t> &sharedTmpBuffer, const SoftMaxTiling &tiling,
                                        const SoftMaxShapeInfo &softmaxShapeInfo = {}) {
    SoftmaxGrad<T, false, isDataFormatNZ>(dst, grad, src, sharedTmpBuffer, tiling, true, softmaxShapeInfo);
}
template <typename T, bool isBasicBlock = false, bool isDataFormatNZ = false>
__aicore__ inline void SoftmaxGradFront(const LocalTensor<T> &dst, const LocalTensor<T> &grad, const LocalTensor<T> &src,
                                        const SoftMaxTiling &tiling, const SoftMaxShapeInfo &softmaxShapeInfo = {}) {
    SoftmaxGradFront<T, isBasicBlock, isDataFormatNZ>(dst, grad, src, composed_calls::free_scratch(), tiling, softmaxShapeInfo);
}

}  // namespace AscendC
