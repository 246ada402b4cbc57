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

// To int8_t by way of half.
inline void to_bytes(const LocalTensor<int8_t> &dst, const LocalTensor<half> &src, const LocalTensor<half> &, uint32_t count) {
    Steps<int8_t>(count).cast(dst, src, RoundMode::CAST_RINT);
}
inline void to_bytes(const LocalTensor<int8_t> &dst, const LocalTensor<float> &src, const LocalTensor<half> &narrow, uint32_t count) {
    Steps<half>(count).cast(narrow, src, RoundMode::CAST_RINT);
    Steps<int8_t>(count).cast(dst, narrow, RoundMode::CAST_RINT);
}

// `scaled(result, first element, elements)` computes a round of values in the scratch buffer.
template <typename T, typename Scaled>
void quantize(const LocalTensor<int8_t> &dst, const LocalTensor<uint8_t> &scratch, uint32_t count, uint32_t round_unit, Scaled scaled) {
    require_math_type<T>();
    const Pieces<T> piece = divide<T>(ComposedCall::AscendQuant, scratch, 2);
    uint32_t elems = round_unit > piece.elems ? piece.elems : piece.elems / round_unit * round_unit;
    if (elems % asim::kUbBlockBytes != 0) elems = piece.elems;      // results of a round begin at a data block
    in_rounds(count, elems, [&](uint32_t done, uint32_t number) {
        scaled(piece[0], done, number);
        to_bytes(dst[done], piece[0], piece[1].template ReinterpretCast<half>(), number);
    });
}

// One scale and offset for all.
template <typename T>
void quantize_all(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &scratch, float scale, float offset,
                  uint32_t count) {
    asim::check_demand(ComposedCall::AscendQuant, Demand::AtMost, count, src.GetSize());
    quantize<T>(dst, scratch, count, 1, [&](const LocalTensor<T> &to, uint32_t done, uint32_t number) {
        const Steps<T> steps(number);
        steps.muls(to, src[done], static_cast<T>(scale));
        steps.adds(to, to, static_cast<T>(offset));
    });
}

// One scale for each of the columns of a row; `shift(steps, values, column)` adds the offsets.
template <typename T, typename Shift>
void quantize_columns(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &scratch,
                      const LocalTensor<T> &scales, uint32_t columns, uint32_t count, Shift shift) {
    asim::check_demand(ComposedCall::AscendQuant, Demand::AtMost, count, src.GetSize());
    asim::check_demand(ComposedCall::AscendQuant, Demand::AboveZero, columns, 0);
    asim::check_demand(ComposedCall::AscendQuant, Demand::WholeBlocks, columns * static_cast<uint32_t>(sizeof(T)), 0);
    asim::check_demand(ComposedCall::AscendQuant, Demand::Equal, count % columns, 0);
    quantize<T>(dst, scratch, count, columns, [&](const LocalTensor<T> &to, uint32_t done, uint32_t number) {
        for (uint32_t at = 0; at < number;) {
            const uint32_t column = (done + at) % columns, left = columns - column;
            const uint32_t part = left < number - at ? left : number - at;
            const Steps<T> steps(part);
            steps.mul(to[at], src[done + at], scales[column]);
            shift(steps, to[at], column);
            at += part;
        }
    });
}

}  // namespace composed_calls

template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
__aicore__ inline void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &sharedTmpBuffer,
                                   const float scale, const float offset, const uint32_t calCount) {
    composed_calls::quantize_all(dst, src, sharedTmpBuffer, scale, offset, calCount);
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
__aicore__ inline void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &sharedTmpBuffer,
                                   const float scale, const float offset) {
    composed_calls::quantize_all(dst, src, sharedTmpBuffer, scale, offset, src.GetSize());
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
__aicore__ inline void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const float scale, const float offset,
                                   const uint32_t calCount) {
    composed_calls::quantize_all(dst, src, composed_calls::free_scratch(), scale, offset, calCount);
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
__aicore__ inline void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const float scale, const float offset) {
    composed_calls::quantize_all(dst, src, composed_calls::free_scratch(), scale, offset, src.GetSize());
}

// The same offset for all columns.
template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
__aicore__ inline void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &sharedTmpBuffer,
                                   const LocalTensor<T> &scaleTensor, const T offset, const uint32_t scaleCount, const uint32_t calCount) {
    composed_calls::quantize_columns(dst, src, sharedTmpBuffer, scaleTensor, scaleCount, calCount,
                              [&](const auto &steps, const LocalTensor<T> &values, uint32_t) { steps.adds(values, values, offset); });
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
__aicore__ inline void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &sharedTmpBuffer,
                                   const LocalTensor<T> &scaleTensor, const T offset) {
    AscendQuant<T>(dst, src, sharedTmpBuffer, scaleTensor, offset, scaleTensor.GetSize(), src.GetSize());
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
__aicore__ inline void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const LocalTensor<T> &scaleTensor,
                                   const T offset, const uint32_t scaleCount, const uint32_t calCount) {
    AscendQuant<T>(dst, src, composed_calls::free_scratch(), scaleTensor, offset, scaleCount, calCount);
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
__aicore__ inline void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const LocalTensor<T> &scaleTensor, const T offset) {
    AscendQuant<T>(dst, src, composed_calls::free_scratch(), scaleTensor, offset, scaleTensor.GetSize(), src.GetSize());
}

// An offset for each column.
template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
__aicore__ inline void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &sharedTmpBuffer,
                                   const LocalTensor<T> &scaleTensor, const LocalTensor<T> &offsetTensor, const uint32_t scaleCount,
                                   const uint32_t offsetCount, const uint32_t calCount) {
    asim::check_demand(composed_calls::ComposedCall::AscendQuant, composed_calls::Demand::Equal, scaleCount, offsetCount);
    composed_calls::quantize_columns(dst, src, sharedTmpBuffer, scaleTensor, scaleCount, calCount,
                              [&](const auto &steps, const LocalTensor<T> &values, uint32_t column) {
                                  steps.add(values, values, offsetTensor[column]);
                              });
}
template <typename T, bool isReuseSource = false, const AscendQuantConfig &config = ASCEND_QUANT_DEFAULT_CFG>
__aicore__ inline void AscendQuant(const LocalTensor<int8_t> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &sharedTmpBuffer,
                                   const LocalTensor<T> &scaleTensor, const LocalTensor<T> &offsetTensor) {
    AscendQuant<T>(dst, src, sharedTmpBuffer, scaleTensor, offsetTensor, scaleTensor.GetSize(), offsetTensor.GetSize(), src.GetSize());
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
    AscendQuant<T>(dst, src, composed_calls::free_scratch(), scaleTensor, offsetTensor, scaleTensor.GetSize(), offsetTensor.GetSize(), src.GetSize());
}

}  // namespace AscendC
