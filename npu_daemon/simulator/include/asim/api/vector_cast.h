// Cast: conversion between element types. Lanes of a repeat are those of the wider type.
#pragma once
#include "asim/api/vector_elementwise.h"
#include "asim/machine/registers.h"
#include "asim/semantics/cast.h"

namespace AscendC {

using asim::RoundMode;

template <typename T, typename U>
__aicore__ inline void Cast(const LocalTensor<T> &dst, const LocalTensor<U> &src, const RoundMode &roundMode,
                            const uint32_t count) {
    static_assert(asim::can_cast<T, U>, "Cast does not support this pair of element types on Atlas A2");
    asim::cast<T, U>(asim::linear(dst), asim::linear(src), roundMode, asim::counted_shape(count));
}

__aicore__ inline void Cast(const LocalTensor<int4b_t> &dst, const LocalTensor<half> &src, const RoundMode &roundMode,
                            const uint32_t count) {
    asim::reset_mask();
    asim::cast_to_int4(dst.bytes(), src.bytes(), roundMode, count);
}

__aicore__ inline void Cast(const LocalTensor<half> &dst, const LocalTensor<int4b_t> &src, const RoundMode &roundMode,
                            const uint32_t count) {
    asim::reset_mask();
    asim::cast_from_int4(dst.bytes(), src.bytes(), roundMode, count);
}

template <typename T, typename U>
__aicore__ inline void cast_repeated(const LocalTensor<T> &dst, const LocalTensor<U> &src, RoundMode mode,
                                     const asim::Shape &shape, const UnaryRepeatParams &params) {
    static_assert(asim::can_cast<T, U>, "Cast does not support this pair of element types on Atlas A2");
    asim::cast<T, U>(asim::strided(dst, params.dstBlkStride, params.dstRepStride),
                     asim::strided(src, params.srcBlkStride, params.srcRepStride), mode, shape);
}

template <typename T, typename U, bool isSetMask = true>
__aicore__ inline void Cast(const LocalTensor<T> &dst, const LocalTensor<U> &src, const RoundMode &roundMode,
                            const uint64_t mask, const uint8_t repeatTime, const UnaryRepeatParams &repeatParams) {
    cast_repeated(dst, src, roundMode, asim::mask_shape<T, isSetMask>(mask, repeatTime), repeatParams);
}

template <typename T, typename U, bool isSetMask = true>
__aicore__ inline void Cast(const LocalTensor<T> &dst, const LocalTensor<U> &src, const RoundMode &roundMode,
                            const uint64_t mask[], const uint8_t repeatTime, const UnaryRepeatParams &repeatParams) {
    cast_repeated(dst, src, roundMode, asim::mask_shape<T, isSetMask>(mask, repeatTime), repeatParams);
}

// Scale of the int32_t to half conversion.
__aicore__ inline void SetDeqScale(half scale) {
    asim::set_deq_scale(asim::float_bits(scale));
}

}  // namespace AscendC
