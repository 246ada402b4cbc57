// DropOut by a mask of bytes or bits, and the transposition of matrices by a plan (asc-devkit, adv_api/detail/filter and
// transpose).
#pragma once
#include "asim/api/library_rows.h"
#include "asim/api/library_steps.h"
#include "asim/api/matrix_transposition.h"
#include "asim/api/vector_gather.h"
#include "asim/machine/refusal.h"

struct alignas(8) ConfusionTransposeTiling {
    uint32_t param0, param1, param2, param3, param4, param5, param6, param7, param8, param9, param10, param11, param12, param13;
    uint32_t param14, param15, param16, param17;
};
namespace AscendC::tiling {
using ::ConfusionTransposeTiling;
}

namespace AscendC {

enum class TransposeType : uint8_t {
    TRANSPOSE_TYPE_NONE, TRANSPOSE_NZ2ND_0213, TRANSPOSE_NZ2NZ_0213, TRANSPOSE_NZ2NZ_012_WITH_N, TRANSPOSE_NZ2ND_012_WITH_N,
    TRANSPOSE_NZ2ND_012_WITHOUT_N, TRANSPOSE_NZ2NZ_012_WITHOUT_N, TRANSPOSE_ND2ND_ONLY
};

namespace composed_calls {

// `count` elements whose byte is 0 become 0, the others are scaled; in the scratch buffer the bytes' values, in half and in T.
template <typename T>
void drop_by_bytes(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &mask,
                   const LocalTensor<uint8_t> &scratch, T scale, uint32_t count) {
    const Pieces<half> piece = divide<half>(ComposedCall::DropOut, scratch, std::is_same_v<T, half> ? 1 : 3);
    const LocalTensor<T> factors = piece[std::is_same_v<T, half> ? 0 : 1].template ReinterpretCast<T>();
    in_rounds(count, piece.elems, [&](uint32_t done, uint32_t number) {
        const Steps<T> steps(number);
        Steps<half>(number).cast(piece[0], mask[done]);
        if constexpr (std::is_same_v<T, float>) steps.cast(factors, piece[0]);
        steps.mul(dst[done], factors, src[done]);
        steps.muls(dst[done], dst[done], scale);
    });
}

// The scalar of the comparison register becomes 0, by way of a repeat of the scratch buffer.
inline void clear_selection_scalar(const LocalTensor<uint8_t> &scratch) {
    asim::check_scratch(ComposedCall::DropOut, bytes_of(scratch), asim::kRepeatBytes);
    const LocalTensor<int16_t> zeros = scratch.template ReinterpretCast<int16_t>();
    ResetMask();
    Muls<int16_t, false>(zeros, zeros, int16_t{0}, kRegisterMask, 1, UnaryRepeatParams{});
    PipeBarrier<PIPE_V>();
    SetCmpMask(zeros);
    PipeBarrier<PIPE_V>();
}

// `count` elements whose bit is 0 become the scalar of the comparison register, the others stay; all of them are scaled.
template <typename T>
void drop_by_bits(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &mask, T scale,
                  uint32_t count) {
    counted(count, [&] {
        Select(dst, mask, src, 1, BinaryRepeatParams{});
        PipeBarrier<PIPE_V>();
        Muls<T, false>(dst, dst, scale, kRegisterMask, 1, UnaryRepeatParams{});
        PipeBarrier<PIPE_V>();
    });
}

// Rows of a mask that begin `stride` bytes apart become rows of `used` bytes that follow each other, in their own place.
inline void pack_mask(const LocalTensor<uint8_t> &mask, uint32_t rows, uint32_t stride, uint32_t used) {
    constexpr uint8_t kAllElements = 7;
    const LocalTensor<uint16_t> pairs = mask.template ReinterpretCast<uint16_t>();
    const GatherMaskParams params(1, static_cast<uint16_t>(rows), static_cast<uint16_t>(stride / asim::kUbBlockBytes), 0);
    uint64_t taken = 0;
    GatherMask(pairs, pairs, kAllElements, true, used / static_cast<uint32_t>(sizeof(uint16_t)), params, taken);
    PipeBarrier<PIPE_V>();
}

// Modes of DropOut, by their numbers.
enum class MaskForm : uint32_t { Any, PaddedBytes, Bytes, Bits, PaddedBits };

inline MaskForm mask_form(const DropOutShapeInfo &info) {
    if (info.srcLastAxis < info.maskLastAxis) return MaskForm::PaddedBytes;
    if (info.srcLastAxis == info.maskLastAxis) return MaskForm::Bytes;
    return uint64_t{info.maskLastAxis} * 8 == info.srcLastAxis ? MaskForm::Bits : MaskForm::PaddedBits;
}

// Faults where the mask has less than the elements of the source, or rows of it that are no whole data blocks are to be packed.
inline void check_mask(const LocalTensor<uint8_t> &mask, const DropOutShapeInfo &info, MaskForm form) {
    constexpr ComposedCall call = ComposedCall::DropOut;
    const uint32_t in_byte = form == MaskForm::Bits || form == MaskForm::PaddedBits ? 8 : 1, columns = info.srcLastAxis;
    asim::check_matrix(call, {info.firstAxis, columns});
    asim::check_matrix(call, {info.firstAxis, info.maskLastAxis});
    asim::check_demand(call, Demand::AboveZero, info.maskLastAxis, 0, Quantity::MaskLastAxis);
    uint32_t used = (info.firstAxis * columns + in_byte - 1) / in_byte;
    if (form == MaskForm::PaddedBytes || form == MaskForm::PaddedBits) {
        asim::check_demand(call, Demand::Multiple, columns, 2 * in_byte, Quantity::SrcLastAxis);
        asim::check_demand(call, Demand::Least, info.maskLastAxis, columns / in_byte, Quantity::MaskLastAxis);
        asim::check_demand(call, Demand::Multiple, info.maskLastAxis, asim::kUbBlockBytes, Quantity::MaskLastAxis);
        used = info.firstAxis == 0 ? 0 : (info.firstAxis - 1) * info.maskLastAxis + columns / in_byte;
    }
    asim::check_demand(call, Demand::Least, mask.GetSize(), used, Quantity::MaskBytes);
}

template <typename T, bool has_zero>
void drop(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &mask,
          const LocalTensor<uint8_t> &scratch, float keep, const DropOutShapeInfo &info, MaskForm form) {
    const auto scale = static_cast<T>(1.0f / keep);
    const uint32_t count = info.firstAxis * info.srcLastAxis;
    check_mask(mask, info, form);
    if (form == MaskForm::Bytes || form == MaskForm::PaddedBytes) {
        if (form == MaskForm::PaddedBytes) pack_mask(mask, info.firstAxis, info.maskLastAxis, info.srcLastAxis);
        drop_by_bytes(dst, src, mask, scratch, scale, count);
    } else {
        if constexpr (!has_zero) clear_selection_scalar(scratch);
        if (form == MaskForm::PaddedBits) pack_mask(mask, info.firstAxis, info.maskLastAxis, info.srcLastAxis / 8);
        drop_by_bits(dst, src, mask, scale, count);
    }
}

}  // namespace composed_calls

// Without a mode, the mask holds bits where its rows are shorter than those of the source. With `isInitBitMode` the kernel has
// set the comparison register to zeros. Rows of a mask that hold more than a row of the source are packed in their own place.
template <typename T, bool isInitBitMode = false, uint32_t dropOutMode = 0>
__aicore__ inline void DropOut(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal,
                               const LocalTensor<uint8_t> &maskLocal, const LocalTensor<uint8_t> &sharedTmpBuffer,
                               const float keepProb, const DropOutShapeInfo &info) {
    require_math_type<T>();
    static_assert(dropOutMode <= 4, "DropOut has modes 0 to 4");
    const auto form = dropOutMode == 0 ? composed_calls::mask_form(info) : static_cast<composed_calls::MaskForm>(dropOutMode);
    composed_calls::drop<T, isInitBitMode>(dstLocal, srcLocal, maskLocal, sharedTmpBuffer, keepProb, info, form);
}
template <typename T, bool isInitBitMode = false, uint32_t dropOutMode = 0>
__aicore__ inline void DropOut(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal,
                               const LocalTensor<uint8_t> &maskLocal, const float keepProb, const DropOutShapeInfo &info) {
    DropOut<T, isInitBitMode, dropOutMode>(dstLocal, srcLocal, maskLocal, composed_calls::free_scratch(), keepProb, info);
}

// A matrix of param1 rows and param2 columns, both multiples of 16.
template <typename T>
__aicore__ inline void Transpose(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &,
                                 TransposeType transposeType, const ConfusionTransposeTiling &tiling) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Transpose takes elements of 16 or 32 bits");
    using composed_calls::ComposedCall, composed_calls::Demand;
    if (transposeType != TransposeType::TRANSPOSE_ND2ND_ONLY) asim::refuse(asim::Refusal::TransposeOfFractals);
    asim::check_matrix(ComposedCall::Transpose, {tiling.param1, tiling.param2});
    asim::check_demand(ComposedCall::Transpose, Demand::Multiple, tiling.param1, composed_calls::kTransposedRows,
                       composed_calls::Quantity::Height);
    asim::check_demand(ComposedCall::Transpose, Demand::Multiple, tiling.param2, composed_calls::kTransposedRows,
                       composed_calls::Quantity::Width);
    composed_calls::rows_to_columns(dst, src, tiling.param1, tiling.param2);
}
template <typename T>
__aicore__ inline void Transpose(const LocalTensor<T> &dst, const LocalTensor<T> &src, TransposeType transposeType,
                                 const ConfusionTransposeTiling &tiling) {
    Transpose(dst, src, LocalTensor<uint8_t>(), transposeType, tiling);
}
template <typename T>
__aicore__ inline void ConfusionTranspose(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                                          const LocalTensor<uint8_t> &scratch, TransposeType transposeType,
                                          const ConfusionTransposeTiling &tiling) {
    Transpose(dst, src, scratch, transposeType, tiling);
}
template <typename T>
__aicore__ inline void ConfusionTranspose(const LocalTensor<T> &dst, const LocalTensor<T> &src, TransposeType transposeType,
                                          const ConfusionTransposeTiling &tiling) {
    Transpose(dst, src, transposeType, tiling);
}

}  // namespace AscendC
