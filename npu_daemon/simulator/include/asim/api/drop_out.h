// DropOut by a mask of bytes or bits, and the transposition of matrices by a plan (asc-devkit, adv_api/detail/filter and transpose).
#pragma once
#include "asim/api/library_rows.h"
#include "asim/api/library_steps.h"
#include "asim/api/matrix_transposition.h"
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

// Elements of a row whose byte is 0 become 0, the others are divided by `keep`; half of the bytes' values in the scratch buffer.
template <typename T>
void drop_by_bytes(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &mask,
                   const LocalTensor<uint8_t> &scratch, float keep, const DropOutShapeInfo &info) {
    const Pieces<half> piece = divide<half>(ComposedCall::DropOut, scratch, 3);
    const LocalTensor<T> factors = std::is_same_v<T, half> ? piece[0].template ReinterpretCast<T>() : piece[1].template ReinterpretCast<T>();
    for (uint32_t row = 0; row < info.firstAxis; ++row) {
        in_rounds(info.srcLastAxis, piece.elems, [&](uint32_t done, uint32_t number) {
            const uint32_t at = row * info.srcLastAxis + done;
            const Steps<T> steps(number);
            Steps<half>(number).cast(piece[0], mask[row * info.maskLastAxis + done]);
            if constexpr (std::is_same_v<T, float>) steps.cast(factors, piece[0]);
            steps.mul(dst[at], src[at], factors);
            steps.muls(dst[at], dst[at], static_cast<T>(1.0f / keep));
        });
    }
}

template <typename T>
void drop_by_bits(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &mask, float keep,
                  const DropOutShapeInfo &info) {
    for (uint32_t row = 0; row < info.firstAxis; ++row) {
        const uint32_t at = row * info.srcLastAxis;
        Select(dst[at], mask[row * info.maskLastAxis], src[at], T(0), SELMODE::VSEL_TENSOR_SCALAR_MODE, info.srcLastAxis);
        PipeBarrier<PIPE_V>();
        Steps<T>(info.srcLastAxis).muls(dst[at], dst[at], static_cast<T>(1.0f / keep));
    }
}

}  // namespace composed_calls

// Without a mode, the mask holds bits where its rows are shorter than those of the source.
template <typename T, bool isInitBitMode = false, uint32_t dropOutMode = 0>
__aicore__ inline void DropOut(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, const LocalTensor<uint8_t> &maskLocal,
                               const LocalTensor<uint8_t> &sharedTmpBuffer, const float keepProb, const DropOutShapeInfo &info) {
    require_math_type<T>();
    static_assert(dropOutMode <= 4, "DropOut has modes 0 to 4");
    asim::check_matrix(composed_calls::ComposedCall::DropOut, {info.firstAxis, info.srcLastAxis});
    asim::check_demand(composed_calls::ComposedCall::DropOut, composed_calls::Demand::WholeBlocks,
                       info.srcLastAxis * static_cast<uint32_t>(sizeof(T)), 0);
    const bool by_bits = dropOutMode == 0 ? info.maskLastAxis < info.srcLastAxis : dropOutMode >= 3;
    if (by_bits) composed_calls::drop_by_bits(dstLocal, srcLocal, maskLocal, keepProb, info);
    else composed_calls::drop_by_bytes(dstLocal, srcLocal, maskLocal, sharedTmpBuffer, keepProb, info);
}
template <typename T, bool isInitBitMode = false, uint32_t dropOutMode = 0>
__aicore__ inline void DropOut(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, const LocalTensor<uint8_t> &maskLocal,
                               const float keepProb, const DropOutShapeInfo &info) {
    DropOut<T, isInitBitMode, dropOutMode>(dstLocal, srcLocal, maskLocal, composed_calls::free_scratch(), keepProb, info);
}

// A matrix of param1 rows and param2 columns, both multiples of 16.
template <typename T>
__aicore__ inline void Transpose(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &, TransposeType transposeType,
                                 const ConfusionTransposeTiling &tiling) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Transpose takes elements of 16 or 32 bits");
    using composed_calls::ComposedCall, composed_calls::Demand;
    if (transposeType != TransposeType::TRANSPOSE_ND2ND_ONLY) asim::refuse(asim::Refusal::TransposeOfFractals);
    asim::check_matrix(ComposedCall::Transpose, {tiling.param1, tiling.param2});
    asim::check_demand(ComposedCall::Transpose, Demand::WholeBlocks, tiling.param1 * 2, 0);
    asim::check_demand(ComposedCall::Transpose, Demand::WholeBlocks, tiling.param2 * 2, 0);
    composed_calls::rows_to_columns(dst, src, tiling.param1, tiling.param2);
}
template <typename T>
__aicore__ inline void Transpose(const LocalTensor<T> &dst, const LocalTensor<T> &src, TransposeType transposeType,
                                 const ConfusionTransposeTiling &tiling) {
    Transpose(dst, src, LocalTensor<uint8_t>(), transposeType, tiling);
}
template <typename T>
__aicore__ inline void ConfusionTranspose(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &scratch,
                                          TransposeType transposeType, const ConfusionTransposeTiling &tiling) {
    Transpose(dst, src, scratch, transposeType, tiling);
}
template <typename T>
__aicore__ inline void ConfusionTranspose(const LocalTensor<T> &dst, const LocalTensor<T> &src, TransposeType transposeType,
                                          const ConfusionTransposeTiling &tiling) {
    Transpose(dst, src, transposeType, tiling);
}

}  // namespace AscendC
