// GroupNorm: groups of channels, each normalized as a row of its own (asc-devkit, page of GroupNorm).
#pragma once
#include "asim/api/layer_norm.h"

struct alignas(8) GroupNormTiling {
    uint32_t n, c, hw, g, d, hwAlignSize, dhwAlignSize, inputXSize, meanVarSize, numberOfTmpBuf;
    uint32_t meanTmpTensorPos, meanTmpTensorSize, varianceTmpTensorPos, varianceTmpTensorSize, tmpBufSize, oneTmpSize;
    uint32_t firstTmpStartPos, secondTmpStartPos, thirdTmpStartPos;
    uint32_t loopRound, inputRoundSize, inputTailSize, inputTailPos, meanVarRoundSize, meanVarTailSize, meanVarTailPos;
    uint32_t bshCurLength, bsCurLength;
    float factor;
    bool smallShape;
};
namespace AscendC::tiling {
using ::GroupNormTiling;
}

namespace AscendC {
namespace composed_calls {

// dst = src * gamma[channel] + beta[channel] for the channels of one group, read by the scalar unit.
template <typename T>
void affine_channels(const LocalTensor<float> &values, const LocalTensor<T> &gamma, const LocalTensor<T> &beta, uint32_t first,
                     uint32_t channels, uint32_t elements) {
    const Steps<float> steps(elements);
    for (uint32_t channel = 0; channel < channels; ++channel) {
        const auto scale = static_cast<float>(gamma.GetValue(first + channel));
        const auto shift = static_cast<float>(beta.GetValue(first + channel));
        const LocalTensor<float> at = values[channel * elements];
        steps.muls(at, at, scale);
        steps.adds(at, at, shift);
    }
}

// One group, in three tensors of floats; what lies behind its data in the last data block of its channels does not count.
template <typename T>
void group_norm(const LocalTensor<T> &output, const LocalTensor<T> &input, const LocalTensor<float> &mean,
                const LocalTensor<float> &variance, const NormScratch &tmp, const LocalTensor<T> &gamma,
                const LocalTensor<T> &beta, uint32_t first_channel, float epsilon, const GroupNormTiling &tiling) {
    const uint32_t elements = tiling.d * tiling.hw;
    LocalTensor<float> x;
    if constexpr (std::is_same_v<T, half>) Steps<float>(elements).cast(x = tmp.a, input);
    else x = input;
    normalize_rows(x, mean, variance, tmp, epsilon, 1.0f / static_cast<float>(elements), 1, elements);
    affine_channels(tmp.c, gamma, beta, first_channel, tiling.d, tiling.hw);
    if constexpr (std::is_same_v<T, half>) Steps<half>(elements).cast(output, tmp.c);
    else Steps<float>(elements).adds(output, tmp.c, 0.0f);
}

}  // namespace composed_calls

template <typename T, bool isReuseSource = false>
__aicore__ inline void GroupNorm(const LocalTensor<T> &output, const LocalTensor<T> &outputMean,
                                 const LocalTensor<T> &outputVariance, const LocalTensor<T> &inputX, const LocalTensor<T> &gamma,
                                 const LocalTensor<T> &beta, const LocalTensor<uint8_t> &sharedTmpBuffer, const T epsilon,
                                 const GroupNormTiling &tiling) {
    require_math_type<T>();
    using composed_calls::ComposedCall, composed_calls::Demand, composed_calls::Quantity;
    const uint32_t elements = tiling.d * tiling.hw, groups = tiling.n * tiling.g, numbers = AlignUp(groups * 8, 8u);
    asim::check_matrix(ComposedCall::GroupNorm, {tiling.n, tiling.g});
    asim::check_matrix(ComposedCall::GroupNorm, {tiling.d, tiling.hw});
    asim::check_matrix(ComposedCall::GroupNorm, {groups, elements});
    asim::check_demand(ComposedCall::GroupNorm, Demand::AboveZero, groups * elements, 0);
    asim::check_demand(ComposedCall::GroupNorm, Demand::Equal, tiling.g * tiling.d, tiling.c, Quantity::GroupedChannels);
    asim::check_demand(ComposedCall::GroupNorm, Demand::WholeBlocks, tiling.hw * static_cast<uint32_t>(sizeof(T)), 0);
    asim::check_demand(ComposedCall::GroupNorm, Demand::Most, elements, composed_calls::kMostFoldedColumns,
                       Quantity::GroupElements);
    asim::check_scratch(ComposedCall::GroupNorm, composed_calls::bytes_of(sharedTmpBuffer),
                        (3ull * elements + 2 * numbers) * sizeof(float));
    const LocalTensor<float> base = sharedTmpBuffer.template ReinterpretCast<float>(), means = base, variances = base[numbers];
    const LocalTensor<float> rows = base[2 * numbers];
    const composed_calls::NormScratch tmp{rows, rows[elements], rows[2 * elements]};
    composed_calls::await<HardEvent::V_S>();
    for (uint32_t group = 0; group < groups; ++group) {
        const uint32_t offset = group * elements;
        composed_calls::group_norm(output[offset], inputX[offset], means[group * 8], variances[group * 8], tmp, gamma, beta,
                                   group % tiling.g * tiling.d, static_cast<float>(epsilon), tiling);
    }
    composed_calls::await<HardEvent::V_S>();
    for (uint32_t group = 0; group < groups; ++group) {
        outputMean.SetValue(group, static_cast<T>(means.GetValue(group * 8)));
        outputVariance.SetValue(group, static_cast<T>(variances.GetValue(group * 8)));
    }
    composed_calls::await<HardEvent::S_V>();
}
template <typename T, bool isReuseSource = false>
__aicore__ inline void GroupNorm(const LocalTensor<T> &output, const LocalTensor<T> &outputMean,
                                 const LocalTensor<T> &outputVariance, const LocalTensor<T> &inputX, const LocalTensor<T> &gamma,
                                 const LocalTensor<T> &beta, const T epsilon, const GroupNormTiling &tiling) {
    GroupNorm<T>(output, outputMean, outputVariance, inputX, gamma, beta, composed_calls::free_scratch(), epsilon, tiling);
}

}  // namespace AscendC
