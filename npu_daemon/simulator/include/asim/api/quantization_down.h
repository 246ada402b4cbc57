// AscendQuant: half or float scaled, shifted and rounded to int8_t, with one scale or one for each column (asc-devkit,
// adv_api/detail/quantization/quant).
#pragma once
#include "asim/api/library_steps.h"

namespace AscendC {

struct AscendQuantConfig {
    uint32_t calcCount = 0;
    uint32_t offsetCount = 0;
    uint32_t scaleCount = 0;
    uint32_t workLocalSize = 0;
};
constexpr AscendQuantConfig ASCEND_QUANT_DEFAULT_CFG = {0, 0, 0, 0};

namespace composed_calls {

// Values in half as the first operand of the next step: half sources as they are, those of float in the scratch buffer.
inline LocalTensor<half> in_half(const LocalTensor<half> &src, const LocalTensor<half> &, const Steps<half> &) { return src; }
inline LocalTensor<half> in_half(const LocalTensor<float> &src, const LocalTensor<half> &tmp, const Steps<half> &steps) {
    steps.cast(tmp, src);
    return tmp;
}

// Scales or offsets of columns in half. Those of float become halfs in their own place, as the published library has it.
template <typename T>
LocalTensor<half> narrowed(const LocalTensor<T> &values, uint32_t columns) {
    const LocalTensor<half> halfs = values.template ReinterpretCast<half>();
    if constexpr (std::is_same_v<T, float>) Steps<half>(columns).cast(halfs, values);
    return halfs;
}

// All of it in half, in rounds of what the scratch buffer holds; `scale` and `shift` get the steps of a round, its values and
// its first element.
template <typename T, typename Scale, typename Shift>
void quantize(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const Pieces<half> &piece, uint32_t count, Scale scale,
              Shift shift) {
    in_rounds(count, piece.elems, [&](uint32_t done, uint32_t number) {
        const Steps<half> steps(number);
        scale(steps, piece[0], in_half(src[done], piece[0], steps), done);
        shift(steps, piece[0], done);
        Steps<int8_t>(number).cast(dst[done], piece[0]);
    });
}

// One scale and offset for all.
template <typename T>
void quantize_all(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &scratch, float scale,
                  float offset, uint32_t count) {
    require_math_type<T>();
    asim::check_demand(ComposedCall::AscendQuant, Demand::AtMost, count, src.GetSize());
    asim::check_demand(ComposedCall::AscendQuant, Demand::Multiple, count, asim::kUbBlockBytes, Quantity::CalCount);
    const auto factor = static_cast<half>(scale), term = static_cast<half>(offset);
    quantize(
        dst, src, divide<half>(ComposedCall::AscendQuant, scratch, 1), count,
        [&](const auto &steps, const auto &to, const auto &from, uint32_t) { steps.muls(to, from, factor); },
        [&](const auto &steps, const auto &to, uint32_t) { steps.adds(to, to, term); });
}

// One scale for each of the columns of a row; `shift(steps, values, first column)` adds the offsets.
template <typename T, typename Shift>
void quantize_columns(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &scratch,
                      const LocalTensor<half> &factors, uint32_t columns, uint32_t count, Shift shift) {
    const Pieces<half> piece = divide<half>(ComposedCall::AscendQuant, scratch, 1);
    for (uint32_t row = 0; row < count; row += columns) {
        const auto scale = [&](const auto &steps, const auto &to, const auto &from, uint32_t column) {
            steps.mul(to, from, factors[column]);
        };
        quantize(dst[row], src[row], piece, columns, scale, shift);
    }
}

template <typename T>
void check_columns(const LocalTensor<T> &src, const LocalTensor<T> &scales, uint32_t columns, uint32_t count) {
    require_math_type<T>();
    constexpr ComposedCall call = ComposedCall::AscendQuant;
    asim::check_demand(call, Demand::AtMost, count, src.GetSize());
    asim::check_demand(call, Demand::AboveZero, columns, 0, Quantity::ScaleCount);
    asim::check_demand(call, Demand::Multiple, columns, asim::kUbBlockBytes, Quantity::ScaleCount);
    asim::check_demand(call, Demand::Most, columns, scales.GetSize(), Quantity::ScaleCount);
    asim::check_demand(call, Demand::Multiple, count, columns, Quantity::CalCount);
}

}  // namespace composed_calls

template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
__aicore__ inline void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src,
                                   const LocalTensor<uint8_t> &sharedTmpBuffer, const float scale, const float offset,
                                   const uint32_t calCount) {
    composed_calls::quantize_all(dst, src, sharedTmpBuffer, scale, offset, calCount);
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
__aicore__ inline void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src,
                                   const LocalTensor<uint8_t> &sharedTmpBuffer, const float scale, const float offset) {
    composed_calls::quantize_all(dst, src, sharedTmpBuffer, scale, offset, src.GetSize());
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
__aicore__ inline void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const float scale,
                                   const float offset, const uint32_t calCount) {
    composed_calls::quantize_all(dst, src, composed_calls::free_scratch(), scale, offset, calCount);
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
__aicore__ inline void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const float scale,
                                   const float offset) {
    composed_calls::quantize_all(dst, src, composed_calls::free_scratch(), scale, offset, src.GetSize());
}

// The same offset for all columns.
template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
__aicore__ inline void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src,
                                   const LocalTensor<uint8_t> &sharedTmpBuffer, const LocalTensor<T> &scaleTensor, const T offset,
                                   const uint32_t scaleCount, const uint32_t calCount) {
    composed_calls::check_columns(src, scaleTensor, scaleCount, calCount);
    const auto term = static_cast<half>(offset);
    const LocalTensor<half> factors = composed_calls::narrowed(scaleTensor, scaleCount);
    composed_calls::quantize_columns(dst, src, sharedTmpBuffer, factors, scaleCount, calCount,
                                     [&](const auto &steps, const auto &to, uint32_t) { steps.adds(to, to, term); });
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
__aicore__ inline void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src,
                                   const LocalTensor<uint8_t> &sharedTmpBuffer, const LocalTensor<T> &scaleTensor,
                                   const T offset) {
    AscendQuant<T>(dst, src, sharedTmpBuffer, scaleTensor, offset, scaleTensor.GetSize(), src.GetSize());
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
__aicore__ inline void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const LocalTensor<T> &scaleTensor,
                                   const T offset, const uint32_t scaleCount, const uint32_t calCount) {
    AscendQuant<T>(dst, src, composed_calls::free_scratch(), scaleTensor, offset, scaleCount, calCount);
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
__aicore__ inline void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const LocalTensor<T> &scaleTensor,
                                   const T offset) {
    AscendQuant<T>(dst, src, composed_calls::free_scratch(), scaleTensor, offset, scaleTensor.GetSize(), src.GetSize());
}

// An offset for each column.
template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
__aicore__ inline void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src,
                                   const LocalTensor<uint8_t> &sharedTmpBuffer, const LocalTensor<T> &scaleTensor,
                                   const LocalTensor<T> &offsetTensor, const uint32_t scaleCount, const uint32_t offsetCount,
                                   const uint32_t calCount) {
    using composed_calls::Demand, composed_calls::Quantity;
    constexpr auto call = composed_calls::ComposedCall::AscendQuant;
    asim::check_demand(call, Demand::Equal, offsetCount, scaleCount, Quantity::OffsetCount);
    asim::check_demand(call, Demand::Most, offsetCount, offsetTensor.GetSize(), Quantity::OffsetCount);
    composed_calls::check_columns(src, scaleTensor, scaleCount, calCount);
    const LocalTensor<half> factors = composed_calls::narrowed(scaleTensor, scaleCount);
    const LocalTensor<half> terms = composed_calls::narrowed(offsetTensor, offsetCount);
    const auto shift = [&](const auto &steps, const auto &to, uint32_t column) { steps.add(to, to, terms[column]); };
    composed_calls::quantize_columns(dst, src, sharedTmpBuffer, factors, scaleCount, calCount, shift);
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
__aicore__ inline void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src,
                                   const LocalTensor<uint8_t> &sharedTmpBuffer, const LocalTensor<T> &scaleTensor,
                                   const LocalTensor<T> &offsetTensor) {
    AscendQuant<T>(dst, src, sharedTmpBuffer, scaleTensor, offsetTensor, scaleTensor.GetSize(), offsetTensor.GetSize(),
                   src.GetSize());
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
__aicore__ inline void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const LocalTensor<T> &scaleTensor,
                                   const LocalTensor<T> &offsetTensor, const uint32_t scaleCount, const uint32_t offsetCount,
                                   const uint32_t calCount) {
    AscendQuant<T>(dst, src, composed_calls::free_scratch(), scaleTensor, offsetTensor, scaleCount, offsetCount, calCount);
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
__aicore__ inline void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const LocalTensor<T> &scaleTensor,
                                   const LocalTensor<T> &offsetTensor) {
    AscendQuant<T>(dst, src, composed_calls::free_scratch(), scaleTensor, offsetTensor, scaleTensor.GetSize(),
                   offsetTensor.GetSize(), src.GetSize());
}

}  // namespace AscendC
