// AscendDequant: from int32 back to floating point, with a scale for each column or for all.
#pragma once
#include "asim/api/math.h"
#include "asim/machine/refusal.h"
#include "asim/semantics/quantization.h"

namespace AscendC {

enum class DeQuantMode : uint8_t { DEQUANT_WITH_SINGLE_ROW, DEQUANT_WITH_MULTI_ROW };

struct DequantParams {
    uint32_t m;
    uint32_t n;
    uint32_t calCount;      // of the n elements of a row
};

// Types that belong together (asc-devkit, advanced API, AscendDequant, tables 5 and 6).
template <typename D, typename S, bool scalar>
constexpr bool can_dequantize = std::is_same_v<D, half> ? std::is_same_v<S, uint64_t> && !scalar
                                                        : std::is_same_v<S, float> || std::is_same_v<S, bfloat16_t>;

template <typename S>
constexpr asim::FactorType factor_type = std::is_same_v<S, float>        ? asim::FactorType::Float
                                         : std::is_same_v<S, bfloat16_t> ? asim::FactorType::Bfloat16
                                                                         : asim::FactorType::LowWord;

// In the mode for single rows, {1, n, calCount} is n / calCount rows of calCount, where they start at data blocks.
template <typename D, DeQuantMode mode>
asim::ScaledRows dequant_rows(const DequantParams &params) {
    if (params.calCount == 0 || params.calCount > params.n || params.n % 8 != 0) {
        asim::refuse(asim::Refusal::DequantRows, params.n, params.calCount);
    }
    const bool splits = mode == DeQuantMode::DEQUANT_WITH_SINGLE_ROW && params.m == 1 &&
                        params.calCount % (asim::kUbBlockBytes / sizeof(D)) == 0 && params.n % params.calCount == 0;
    return {splits ? params.calCount : params.n, params.calCount, params.m * params.n};
}

template <typename D, typename S, DeQuantMode mode>
void dequantize(const LocalTensor<D> &dst, const LocalTensor<int32_t> &src, const LocalTensor<S> &scales,
                const DequantParams &params, asim::Scratch scratch) {
    asim::check_operands(asim::LibraryContract::AscendDequant, dst.bytes(), uint64_t{params.m} * params.n * sizeof(D), src.bytes(),
                         uint64_t{params.m} * params.n * sizeof(int32_t));
    static_assert(can_dequantize<D, S, false>, "AscendDequant does not take these types of result and scale");
    if (params.calCount > scales.GetSize()) asim::refuse(asim::Refusal::DequantScales, params.calCount, scales.GetSize());
    asim::dequantize<D>(dst.bytes(), src.bytes(), {scales.bytes(), factor_type<S>}, dequant_rows<D, mode>(params), scratch);
}

template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
__aicore__ inline void AscendDequant(const LocalTensor<dstT> &dst, const LocalTensor<int32_t> &src,
                                     const LocalTensor<scaleT> &deqScale, const LocalTensor<uint8_t> &sharedTmpBuffer,
                                     DequantParams params) {
    dequantize<dstT, scaleT, mode>(dst, src, deqScale, params, scratch_of(sharedTmpBuffer));
}
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
__aicore__ inline void AscendDequant(const LocalTensor<dstT> &dst, const LocalTensor<int32_t> &src,
                                     const LocalTensor<scaleT> &deqScale, DequantParams params) {
    dequantize<dstT, scaleT, mode>(dst, src, deqScale, params, asim::remaining_scratch());
}

// One scale for all.
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
__aicore__ inline std::enable_if_t<can_dequantize<dstT, scaleT, true>> AscendDequant(
    const LocalTensor<dstT> &dst, const LocalTensor<int32_t> &src, const scaleT deqScale,
    const LocalTensor<uint8_t> &sharedTmpBuffer, DequantParams params) {
    asim::dequantize<dstT>(dst.bytes(), src.bytes(), {nullptr, asim::FactorType::Float, static_cast<float>(deqScale)},
                           dequant_rows<dstT, mode>(params), scratch_of(sharedTmpBuffer));
}
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
__aicore__ inline std::enable_if_t<can_dequantize<dstT, scaleT, true>> AscendDequant(
    const LocalTensor<dstT> &dst, const LocalTensor<int32_t> &src, const scaleT deqScale, DequantParams params) {
    asim::dequantize<dstT>(dst.bytes(), src.bytes(), {nullptr, asim::FactorType::Float, static_cast<float>(deqScale)},
                           dequant_rows<dstT, mode>(params), asim::remaining_scratch());
}

// Older forms: rows as long as the scales, `calCount` elements in all.
template <typename D, typename S>
void dequantize_elements(const LocalTensor<D> &dst, const LocalTensor<int32_t> &src, const LocalTensor<S> &scales,
                         uint32_t elements, asim::Scratch scratch) {
    static_assert(can_dequantize<D, S, false>, "AscendDequant does not take these types of result and scale");
    const uint32_t columns = scales.GetSize();
    if (columns == 0 || columns % 8 != 0 || src.GetSize() % columns != 0 || elements > src.GetSize()) {
        asim::refuse(asim::Refusal::DequantElements, elements, src.GetSize(), columns);
    }
    asim::check_operands(asim::LibraryContract::AscendDequant, dst.bytes(), uint64_t{elements} * sizeof(D), src.bytes(), uint64_t{elements} * sizeof(int32_t));
    asim::dequantize<D>(dst.bytes(), src.bytes(), {scales.bytes(), factor_type<S>}, {columns, columns, elements}, scratch);
}

template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
__aicore__ inline void AscendDequant(const LocalTensor<dstT> &dst, const LocalTensor<int32_t> &src,
                                     const LocalTensor<scaleT> &deqScale, const LocalTensor<uint8_t> &sharedTmpBuffer,
                                     const uint32_t calCount) {
    dequantize_elements(dst, src, deqScale, calCount, scratch_of(sharedTmpBuffer));
}
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
__aicore__ inline void AscendDequant(const LocalTensor<dstT> &dst, const LocalTensor<int32_t> &src,
                                     const LocalTensor<scaleT> &deqScale, const LocalTensor<uint8_t> &sharedTmpBuffer) {
    dequantize_elements(dst, src, deqScale, src.GetSize(), scratch_of(sharedTmpBuffer));
}
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
__aicore__ inline void AscendDequant(const LocalTensor<dstT> &dst, const LocalTensor<int32_t> &src,
                                     const LocalTensor<scaleT> &deqScale, const uint32_t calCount) {
    dequantize_elements(dst, src, deqScale, calCount, asim::remaining_scratch());
}
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
__aicore__ inline void AscendDequant(const LocalTensor<dstT> &dst, const LocalTensor<int32_t> &src,
                                     const LocalTensor<scaleT> &deqScale) {
    dequantize_elements(dst, src, deqScale, src.GetSize(), asim::remaining_scratch());
}

}  // namespace AscendC
