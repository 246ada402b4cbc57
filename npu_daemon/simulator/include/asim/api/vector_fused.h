// AddReluCast, SubReluCast, MulCast and AddDeqRelu: arithmetic whose result is of another type. MulAddRelu is FusedMulAddRelu.
#pragma once
#include "asim/api/library_steps.h"
#include "asim/api/mask.h"
#include "asim/api/vector_elementwise.h"
#include "asim/semantics/arithmetic_cast.h"

namespace AscendC {

#define ASIM_ARITHMETIC_CAST(Name)                                                                                      \
    template <typename T, typename U>                                                                                   \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1,      \
                                const uint32_t count) {                                                                 \
        static_assert(asim::casts_result<asim::Op::Name, T, U>, #Name " does not take this pair of element types");     \
        asim::arithmetic_cast<asim::Op::Name, T, U>(asim::linear(dst), asim::linear(src0), asim::linear(src1),          \
                                                    asim::counted_shape(count));                                        \
    }                                                                                                                   \
    template <typename T, typename U, bool isSetMask = true, typename Mask>                                             \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1,      \
                                const Mask &mask, const uint8_t repeatTime, const BinaryRepeatParams &params) {         \
        static_assert(asim::casts_result<asim::Op::Name, T, U>, #Name " does not take this pair of element types");     \
        asim::arithmetic_cast<asim::Op::Name, T, U>(asim::strided(dst, params.dstBlkStride, params.dstRepStride),       \
                                                    asim::strided(src0, params.src0BlkStride, params.src0RepStride),    \
                                                    asim::strided(src1, params.src1BlkStride, params.src1RepStride),    \
                                                    asim::mask_shape<U, isSetMask>(mask, repeatTime));                  \
    }
ASIM_ARITHMETIC_CAST(AddReluCast)
ASIM_ARITHMETIC_CAST(SubReluCast)
ASIM_ARITHMETIC_CAST(MulCast)
#undef ASIM_ARITHMETIC_CAST

template <typename T>
__aicore__ inline void MulAddRelu(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                                  const int32_t &count) {
    FusedMulAddRelu(dst, src0, src1, count);
}
template <typename T, bool isSetMask = true, typename Mask>
__aicore__ inline void MulAddRelu(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, Mask mask,
                                  const uint8_t repeatTime, const BinaryRepeatParams &params) {
    FusedMulAddRelu<T, isSetMask>(dst, src0, src1, mask, repeatTime, params);
}

// Three instructions on up to 2048 elements each, with the sums in the free unified buffer (asc-devkit, basic_api/dav_c220).
__aicore__ inline void AddDeqRelu(const LocalTensor<half> &dst, const LocalTensor<int32_t> &src0, const LocalTensor<int32_t> &src1,
                                  const int32_t &count) {
    constexpr uint32_t kElems = 2048;
    const LocalTensor<int32_t> sums = composed_calls::free_scratch().ReinterpretCast<int32_t>();
    const uint32_t elems = count < 0 ? 0 : static_cast<uint32_t>(count);
    composed_calls::in_rounds(elems, kElems, [&](uint32_t done, uint32_t number) {
        const auto part = static_cast<int32_t>(number);
        Add(sums, src0[done], src1[done], part);
        PipeBarrier<PIPE_V>();
        Cast(dst[done], sums, RoundMode::CAST_NONE, number);
        PipeBarrier<PIPE_V>();
        Relu(dst[done], dst[done], part);
    });
}
template <typename T, typename U>
__aicore__ inline void AddDeqRelu(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1,
                                  const int32_t &count) {
    static_assert(std::is_same_v<T, half> && std::is_same_v<U, int32_t>, "AddDeqRelu takes int32_t and gives half");
    AddDeqRelu(static_cast<const LocalTensor<half> &>(dst), src0, src1, count);
}

}  // namespace AscendC
