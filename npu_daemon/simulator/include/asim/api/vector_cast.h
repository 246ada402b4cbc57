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
    const asim::Lanes to{dst.bytes(), params.dstBlkStride, params.dstRepStride}, from{src.bytes(), params.srcBlkStride, params.srcRepStride};
    if constexpr (std::is_same_v<T, int4b_t> || std::is_same_v<U, int4b_t>) {
        static_assert(std::is_same_v<T, half> || std::is_same_v<U, half>, "Cast takes int4b_t from and to half");
        asim::cast_int4_lanes(to, from, mode, shape, std::is_same_v<T, int4b_t>);
    } else {
        static_assert(asim::can_cast<T, U>, "Cast does not support this pair of element types on Atlas A2");
        asim::cast<T, U>(to, from, mode, shape);
    }
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

// Of int16_t to eight bits: for all, or for each of the 16 of a data block by a table in the unified buffer.
__aicore__ inline uint64_t deq_scale_word(float scale, int16_t offset, bool signMode) {
    constexpr uint64_t kOffsetMask = 0x1ff;
    return uint64_t{asim::float_bits(scale)} | (static_cast<uint64_t>(offset) & kOffsetMask) << 37 | uint64_t{signMode} << 46;
}
__aicore__ inline void SetDeqScale(float scale, int16_t offset, bool signMode) { asim::set_deq_scale(deq_scale_word(scale, offset, signMode)); }

struct VdeqInfo {
    static constexpr int kEntries = 16;
    VdeqInfo() = default;
    VdeqInfo(const float scales[kEntries], const int16_t offsets[kEntries], const bool signs[kEntries]) {
        std::copy_n(scales, kEntries, vdeqScale);
        std::copy_n(offsets, kEntries, vdeqOffset);
        std::copy_n(signs, kEntries, vdeqSignMode);
    }

    float vdeqScale[kEntries] = {0};
    int16_t vdeqOffset[kEntries] = {0};
    bool vdeqSignMode[kEntries] = {0};
};

template <typename T>
__aicore__ inline void SetDeqScale(const LocalTensor<T> &vdeq, const VdeqInfo &vdeqInfo) {
    static_assert(std::is_same_v<T, uint64_t>, "SetDeqScale takes a table of uint64_t");
    for (uint32_t i = 0; i < VdeqInfo::kEntries; ++i) {
        vdeq.SetValue(i, deq_scale_word(vdeqInfo.vdeqScale[i], vdeqInfo.vdeqOffset[i], vdeqInfo.vdeqSignMode[i]));
    }
    asim::set_deq_table(vdeq.bytes());
}

template <typename T, typename U, bool isVecDeq, bool halfBlock>
__aicore__ inline void cast_dequantised(const asim::Lanes &dst, const asim::Lanes &src, const asim::Shape &shape) {
    if constexpr (std::is_same_v<T, half> && std::is_same_v<U, int32_t>) {
        asim::cast<half, int32_t>(dst, src, RoundMode::CAST_NONE, shape);
    } else {
        static_assert((std::is_same_v<T, int8_t> || std::is_same_v<T, uint8_t>) && std::is_same_v<U, int16_t>,
                      "CastDequant takes int32_t to half, and int16_t to int8_t or uint8_t, on Atlas A2");
        asim::cast_dequant(dst, src, {std::is_same_v<T, int8_t>, isVecDeq, halfBlock}, shape);
    }
}
template <typename T, typename U, bool isVecDeq = true, bool halfBlock = true>
__aicore__ inline void CastDequant(const LocalTensor<T> &dst, const LocalTensor<U> &src, const uint32_t count) {
    cast_dequantised<T, U, isVecDeq, halfBlock>(asim::linear(dst), asim::linear(src), asim::counted_shape(count));
}
template <typename T, typename U, bool isSetMask = true, bool isVecDeq = true, bool halfBlock = true>
__aicore__ inline void CastDequant(const LocalTensor<T> &dst, const LocalTensor<U> &src, const int32_t mask, uint8_t repeatTime,
                                   const UnaryRepeatParams &repeatParams) {
    cast_dequantised<T, U, isVecDeq, halfBlock>(asim::strided(dst, repeatParams.dstBlkStride, repeatParams.dstRepStride),
                                                asim::strided(src, repeatParams.srcBlkStride, repeatParams.srcRepStride),
                                                asim::mask_shape<U, isSetMask>(static_cast<uint64_t>(mask), repeatTime));
}
template <typename T, typename U, bool isSetMask = true, bool isVecDeq = true, bool halfBlock = true>
__aicore__ inline void CastDequant(const LocalTensor<T> &dst, const LocalTensor<U> &src, const uint64_t mask[], uint8_t repeatTime,
                                   const UnaryRepeatParams &repeatParams) {
    cast_dequantised<T, U, isVecDeq, halfBlock>(asim::strided(dst, repeatParams.dstBlkStride, repeatParams.dstRepStride),
                                                asim::strided(src, repeatParams.srcBlkStride, repeatParams.srcRepStride),
                                                asim::mask_shape<U, isSetMask>(mask, repeatTime));
}

}  // namespace AscendC
