// AscendAntiQuant: int8_t or int4b_t to half or bfloat16_t, shifted and scaled for all elements, by columns, or by rows (isTranspose). Steps as the page
// lists them: half where half comes out, float where bfloat16_t does.
#pragma once
#include "asim/api/norm_gradients.h"

namespace AscendC {

struct AntiQuantShapeInfo {
    uint32_t offsetHeight{0}, offsetWidth{0}, scaleHeight{0}, scaleWidth{0};
};

namespace composed_calls {

template <typename Out>
using AntiQuantType = std::conditional_t<std::is_same_v<Out, half>, half, float>;

template <typename Out, typename In>
constexpr void require_anti_quant() {
    static_assert(std::is_same_v<In, int8_t> || std::is_same_v<In, int4b_t>, "AscendAntiQuant takes int8_t or int4b_t on Atlas A2");
    static_assert(std::is_same_v<Out, half> || std::is_same_v<Out, bfloat16_t>, "AscendAntiQuant gives half or bfloat16_t on Atlas A2");
}

// Two numbers of four bits share a byte, so a data block holds 64 of them, and a tensor twice its bytes.
template <typename In>
constexpr uint32_t kAntiQuantsOfByte = std::is_same_v<In, int4b_t> ? 2 : 1;
template <typename In>
constexpr uint32_t kAntiQuantsOfBlock = asim::kUbBlockBytes * kAntiQuantsOfByte<In>;

template <typename In>
uint32_t anti_quant_count(const LocalTensor<In> &src) {
    return src.GetLength() * kAntiQuantsOfByte<In>;
}
template <typename In>
LocalTensor<In> anti_quants_from(const LocalTensor<In> &src, uint32_t first) {
    return src[first / kAntiQuantsOfByte<In>];
}

// Values of `count` elements in the type that they are computed in; `halves` is for those that become floats.
template <typename Out, typename In>
void load_anti_quant(const LocalTensor<AntiQuantType<Out>> &values, const LocalTensor<In> &src, const LocalTensor<half> &halves, uint32_t count) {
    if constexpr (std::is_same_v<Out, half>) {
        Steps<half>(count).cast(values, src);
    } else {
        Steps<half>(count).cast(halves, src);
        Steps<float>(count).cast(values, halves);
    }
}

template <typename Out>
void store_anti_quant(const LocalTensor<Out> &dst, const LocalTensor<AntiQuantType<Out>> &values, uint32_t count) {
    if constexpr (std::is_same_v<Out, bfloat16_t>) Steps<bfloat16_t>(count).cast(dst, values, RoundMode::CAST_RINT);
    else Steps<half>(count).muls(dst, values, half(1.0f));
}

// `work(steps, values, first, number)` shifts and scales elements of the round.
template <typename Out, typename In, typename Work>
void anti_quantize(const LocalTensor<Out> &dst, const LocalTensor<In> &src, const LocalTensor<uint8_t> &scratch, uint32_t first, uint32_t count,
                   Work work) {
    using Type = AntiQuantType<Out>;
    constexpr uint32_t kPieces = std::is_same_v<Out, half> ? 1 : 3;
    asim::check_scratch(ComposedCall::AscendAntiQuant, bytes_of(scratch), uint64_t{kPieces} * kAntiQuantsOfBlock<In> * sizeof(Type));
    const Pieces<Type> piece = divide<Type>(ComposedCall::AscendAntiQuant, scratch, kPieces);
    in_rounds(count, piece.elems / kAntiQuantsOfBlock<In> * kAntiQuantsOfBlock<In>, [&](uint32_t done, uint32_t number) {
        load_anti_quant<Out>(piece[0], anti_quants_from(src, first + done), piece[std::is_same_v<Out, half> ? 0 : 1].template ReinterpretCast<half>(), number);
        work(Steps<Type>(number), piece[0], piece, done, number);
        store_anti_quant(dst[first + done], piece[0], number);
    });
}

template <typename Out, typename In>
void check_anti_quant(const LocalTensor<Out> &dst, const LocalTensor<In> &src, const LocalTensor<uint8_t> &scratch) {
    const uint32_t count = anti_quant_count(src);
    asim::check_demand(ComposedCall::AscendAntiQuant, Demand::WholeBlocks, src.GetLength(), 0);
    asim::check_demand(ComposedCall::AscendAntiQuant, Demand::AtMost, count, dst.GetSize());
    const LibraryContract contract = LibraryContract::AscendAntiQuant;
    const uint64_t bytes = uint64_t{count} * sizeof(Out);
    asim::check_operands(contract, dst.bytes(), bytes, src.bytes(), src.GetLength());
    asim::check_beside_scratch(contract, dst.bytes(), bytes, scratch.bytes(), scratch.GetSize());
    asim::check_beside_scratch(contract, src.bytes(), src.GetLength(), scratch.bytes(), scratch.GetSize());
}

template <typename Out>
AntiQuantType<Out> anti_quant_number(Out value) {
    return static_cast<AntiQuantType<Out>>(static_cast<float>(value));
}

// The height and width of scales or offsets, from the call or from their tensor.
struct FactorShape {
    uint32_t height, width;
};
template <typename T>
FactorShape factor_shape(const LocalTensor<T> &factors, uint32_t height, uint32_t width) {
    if (height != 0 && width != 0) return {height, width};
    const ShapeInfo noted = factors.GetShapeInfo();
    if (noted.shapeDim == 2) return {noted.shape[0], noted.shape[1]};
    return {1, factors.GetSize()};
}

// A row of factors in the type of the computation: those of bfloat16_t become floats in the last piece.
template <typename Out>
LocalTensor<AntiQuantType<Out>> factors_of(const LocalTensor<Out> &factors, const Pieces<AntiQuantType<Out>> &piece, uint32_t number) {
    if constexpr (std::is_same_v<Out, half>) {
        return factors;
    } else {
        Steps<float>(number).cast(piece[2], factors);
        return piece[2];
    }
}

// src[i][j] with the factors of column j, one row of them for each group of rows.
template <typename Out, typename In>
void anti_quantize_columns(const LocalTensor<Out> &dst, const LocalTensor<In> &src, const LocalTensor<Out> *offset, const LocalTensor<Out> &scale,
                           const LocalTensor<uint8_t> &scratch, uint32_t rows, const FactorShape &shape) {
    constexpr ComposedCall call = ComposedCall::AscendAntiQuant;
    asim::check_demand(call, Demand::AboveZero, shape.height, 0, Quantity::ScaleCount);
    asim::check_demand(call, Demand::Multiple, rows, shape.height, Quantity::K);
    asim::check_demand(call, Demand::Multiple, shape.width, kAntiQuantsOfBlock<In>, Quantity::ScaleCount);
    const uint32_t columns = shape.width, group = rows / shape.height;
    for (uint32_t row = 0; row < rows; ++row) {
        const uint32_t factor_row = row / group * columns;
        anti_quantize(dst, src, scratch, row * columns, columns, [&](const auto &steps, const auto &values, const auto &piece, uint32_t done, uint32_t number) {
            if (offset != nullptr) steps.add(values, values, factors_of<Out>((*offset)[factor_row + done], piece, number));
            steps.mul(values, values, factors_of<Out>(scale[factor_row + done], piece, number));
        });
    }
}

// src[i][j] with the factors of row i, one for each group of columns, as numbers of the scalar unit.
template <typename Out, typename In>
void anti_quantize_rows(const LocalTensor<Out> &dst, const LocalTensor<In> &src, const LocalTensor<Out> *offset, const LocalTensor<Out> &scale,
                        const LocalTensor<uint8_t> &scratch, uint32_t columns, const FactorShape &shape) {
    constexpr ComposedCall call = ComposedCall::AscendAntiQuant;
    asim::check_demand(call, Demand::AboveZero, shape.width, 0, Quantity::ScaleCount);
    asim::check_demand(call, Demand::Multiple, columns, shape.width * kAntiQuantsOfBlock<In>, Quantity::K);
    const uint32_t group = columns / shape.width;
    await<HardEvent::V_S>();
    for (uint32_t part = 0; part < shape.height * shape.width; ++part) {
        anti_quantize(dst, src, scratch, part * group, group, [&](const auto &steps, const auto &values, const auto &, uint32_t, uint32_t) {
            if (offset != nullptr) steps.adds(values, values, anti_quant_number(offset->GetValue(part)));
            steps.muls(values, values, anti_quant_number(scale.GetValue(part)));
        });
    }
}

template <bool isTranspose, typename Out, typename In>
void anti_quantize_channels(const LocalTensor<Out> &dst, const LocalTensor<In> &src, const LocalTensor<Out> *offset, const LocalTensor<Out> &scale,
                            const LocalTensor<uint8_t> &scratch, uint32_t k, const FactorShape &shape) {
    check_anti_quant(dst, src, scratch);
    if constexpr (isTranspose) anti_quantize_rows(dst, src, offset, scale, scratch, k, shape);
    else anti_quantize_columns(dst, src, offset, scale, scratch, k, shape);
}

}  // namespace composed_calls

template <typename InputDataType, typename OutputDataType, bool isTranspose>
__aicore__ inline void AscendAntiQuant(const LocalTensor<OutputDataType> &dst, const LocalTensor<InputDataType> &src,
                                       const LocalTensor<OutputDataType> &offset, const LocalTensor<OutputDataType> &scale,
                                       const LocalTensor<uint8_t> &sharedTmpBuffer, const uint32_t k, const AntiQuantShapeInfo &shapeInfo = {}) {
    using namespace composed_calls;
    require_anti_quant<OutputDataType, InputDataType>();
    const FactorShape shape = factor_shape(scale, shapeInfo.scaleHeight, shapeInfo.scaleWidth);
    const FactorShape offsets = factor_shape(offset, shapeInfo.offsetHeight, shapeInfo.offsetWidth);
    asim::check_demand(ComposedCall::AscendAntiQuant, Demand::Equal, offsets.height * offsets.width, shape.height * shape.width, Quantity::OffsetCount);
    anti_quantize_channels<isTranspose, OutputDataType>(dst, src, &offset, scale, sharedTmpBuffer, k, shape);
}
template <typename InputDataType, typename OutputDataType, bool isTranspose>
__aicore__ inline void AscendAntiQuant(const LocalTensor<OutputDataType> &dst, const LocalTensor<InputDataType> &src,
                                       const LocalTensor<OutputDataType> &offset, const LocalTensor<OutputDataType> &scale, const uint32_t k,
                                       const AntiQuantShapeInfo &shapeInfo = {}) {
    AscendAntiQuant<InputDataType, OutputDataType, isTranspose>(dst, src, offset, scale, composed_calls::free_scratch(), k, shapeInfo);
}
template <typename InputDataType, typename OutputDataType, bool isTranspose>
__aicore__ inline void AscendAntiQuant(const LocalTensor<OutputDataType> &dst, const LocalTensor<InputDataType> &src,
                                       const LocalTensor<OutputDataType> &scale, const LocalTensor<uint8_t> &sharedTmpBuffer, const uint32_t k,
                                       const AntiQuantShapeInfo &shapeInfo = {}) {
    using namespace composed_calls;
    require_anti_quant<OutputDataType, InputDataType>();
    const FactorShape shape = factor_shape(scale, shapeInfo.scaleHeight, shapeInfo.scaleWidth);
    anti_quantize_channels<isTranspose, OutputDataType>(dst, src, nullptr, scale, sharedTmpBuffer, k, shape);
}

// One offset and scale for all.
template <typename InputDataType, typename OutputDataType, bool isTranspose>
__aicore__ inline void AscendAntiQuant(const LocalTensor<OutputDataType> &dst, const LocalTensor<InputDataType> &src, const OutputDataType offset,
                                       const OutputDataType scale, const LocalTensor<uint8_t> &sharedTmpBuffer, [[maybe_unused]] const uint32_t k,
                                       const AntiQuantShapeInfo & = {}) {
    using namespace composed_calls;
    require_anti_quant<OutputDataType, InputDataType>();
    check_anti_quant(dst, src, sharedTmpBuffer);
    anti_quantize(dst, src, sharedTmpBuffer, 0, anti_quant_count(src), [&](const auto &steps, const auto &values, const auto &, uint32_t, uint32_t) {
        steps.adds(values, values, anti_quant_number(offset));
        steps.muls(values, values, anti_quant_number(scale));
    });
}
template <typename InputDataType, typename OutputDataType, bool isTranspose>
__aicore__ inline void AscendAntiQuant(const LocalTensor<OutputDataType> &dst, const LocalTensor<InputDataType> &src, const OutputDataType offset,
                                       const OutputDataType scale, const uint32_t k, const AntiQuantShapeInfo &shapeInfo = {}) {
    AscendAntiQuant<InputDataType, OutputDataType, isTranspose>(dst, src, offset, scale, composed_calls::free_scratch(), k, shapeInfo);
}
template <typename InputDataType, typename OutputDataType, bool isTranspose>
__aicore__ inline void AscendAntiQuant(const LocalTensor<OutputDataType> &dst, const LocalTensor<InputDataType> &src, const OutputDataType scale,
                                       const LocalTensor<uint8_t> &sharedTmpBuffer, [[maybe_unused]] const uint32_t k, const AntiQuantShapeInfo & = {}) {
    using namespace composed_calls;
    require_anti_quant<OutputDataType, InputDataType>();
    check_anti_quant(dst, src, sharedTmpBuffer);
    anti_quantize(dst, src, sharedTmpBuffer, 0, anti_quant_count(src), [&](const auto &steps, const auto &values, const auto &, uint32_t, uint32_t) {
        steps.muls(values, values, anti_quant_number(scale));
    });
}

}  // namespace AscendC
