// Element-wise vector instructions: for each a form over the first `count` elements and forms over
// repeats with a mask (a number of leading lanes, or one bit a lane) and strides in 32 B data blocks.
#pragma once
#include "asim/api/mask.h"
#include "asim/api/tensor.h"
#include "asim/semantics/vector.h"

namespace AscendC {

struct UnaryRepeatParams {
    UnaryRepeatParams() = default;
    UnaryRepeatParams(uint16_t dst_block, uint16_t src_block, uint8_t dst_repeat, uint8_t src_repeat)
        : dstBlkStride(dst_block), srcBlkStride(src_block), dstRepStride(dst_repeat), srcRepStride(src_repeat) {}
    UnaryRepeatParams(uint16_t dst_block, uint16_t src_block, uint8_t dst_repeat, uint8_t src_repeat, bool half_block_mode)
        : UnaryRepeatParams(dst_block, src_block, dst_repeat, src_repeat) {
        halfBlock = half_block_mode;
    }

    uint32_t blockNumber = 8;
    uint16_t dstBlkStride = 1;
    uint16_t srcBlkStride = 1;
    uint8_t dstRepStride = 8;
    uint8_t srcRepStride = 8;
    bool repeatStrideMode = false;
    bool strideSizeMode = false;
    bool halfBlock = false;
};

struct BinaryRepeatParams {
    BinaryRepeatParams() = default;
    BinaryRepeatParams(uint8_t dst_block, uint8_t src0_block, uint8_t src1_block, uint8_t dst_repeat, uint8_t src0_repeat,
                       uint8_t src1_repeat)
        : dstBlkStride(dst_block), src0BlkStride(src0_block), src1BlkStride(src1_block), dstRepStride(dst_repeat),
          src0RepStride(src0_repeat), src1RepStride(src1_repeat) {}

    uint32_t blockNumber = 8;
    uint8_t dstBlkStride = 1;
    uint8_t src0BlkStride = 1;
    uint8_t src1BlkStride = 1;
    uint8_t dstRepStride = 8;
    uint8_t src0RepStride = 8;
    uint8_t src1RepStride = 8;
    bool repeatStrideMode = false;
    bool strideSizeMode = false;
};

template <asim::Op O, typename T>
constexpr void require_type() {
    static_assert(asim::supports<O, T>, "this instruction does not support the element type on Atlas A2");
}

template <asim::Op O, typename T>
__aicore__ inline void unary_counted(const LocalTensor<T> &dst, const LocalTensor<T> &src, int32_t count) {
    require_type<O, T>();
    asim::unary<O, T>(asim::linear(dst), asim::linear(src), asim::counted_shape(count));
}

template <asim::Op O, typename T>
__aicore__ inline void unary_repeated(const LocalTensor<T> &dst, const LocalTensor<T> &src, const asim::Shape &shape,
                                      const UnaryRepeatParams &params) {
    require_type<O, T>();
    asim::unary<O, T>(asim::strided(dst, params.dstBlkStride, params.dstRepStride),
                      asim::strided(src, params.srcBlkStride, params.srcRepStride), shape);
}

// The counted forms of And and Or take integers of any width as elements of 16 bits, and count those.
template <asim::Op O, typename T>
using CountedAs = std::conditional_t<(O == asim::Op::And || O == asim::Op::Or) && std::is_integral_v<T> && sizeof(T) != 2, int16_t, T>;

template <asim::Op O, typename Element>
__aicore__ inline void binary_counted(const LocalTensor<Element> &dst, const LocalTensor<Element> &src0,
                                      const LocalTensor<Element> &src1, int32_t count) {
    using T = CountedAs<O, Element>;
    require_type<O, T>();
    asim::binary<O, T>(asim::linear(dst), asim::linear(src0), asim::linear(src1), asim::counted_shape(count));
}

template <asim::Op O, typename T>
__aicore__ inline void binary_repeated(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                                       const asim::Shape &shape, const BinaryRepeatParams &params) {
    require_type<O, T>();
    asim::binary<O, T>(asim::strided(dst, params.dstBlkStride, params.dstRepStride),
                       asim::strided(src0, params.src0BlkStride, params.src0RepStride),
                       asim::strided(src1, params.src1BlkStride, params.src1RepStride), shape);
}

template <asim::Op O, bool set_mask, typename T>
__aicore__ inline void scalar_counted(const LocalTensor<T> &dst, const LocalTensor<T> &src, T scalar, int32_t count) {
    require_type<O, T>();
    asim::with_scalar<O, T>(asim::linear(dst), asim::linear(src), scalar, asim::counted_shape<set_mask>(count));
}

template <asim::Op O, typename T>
__aicore__ inline void scalar_repeated(const LocalTensor<T> &dst, const LocalTensor<T> &src, T scalar,
                                       const asim::Shape &shape, const UnaryRepeatParams &params) {
    require_type<O, T>();
    asim::with_scalar<O, T>(asim::strided(dst, params.dstBlkStride, params.dstRepStride),
                            asim::strided(src, params.srcBlkStride, params.srcRepStride), scalar, shape);
}

#define ASIM_unary(Name)                                                                                               \
    template <typename T>                                                                                              \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t &count) {          \
        unary_counted<asim::Op::Name>(dst, src, count);                                                                \
    }                                                                                                                  \
    template <typename T, bool isSetMask = true>                                                                       \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint64_t mask,                   \
                                const uint8_t repeatTime, const UnaryRepeatParams &params) {                           \
        unary_repeated<asim::Op::Name>(dst, src, asim::mask_shape<T, isSetMask>(mask, repeatTime), params);            \
    }                                                                                                                  \
    template <typename T, bool isSetMask = true>                                                                       \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint64_t mask[],                 \
                                const uint8_t repeatTime, const UnaryRepeatParams &params) {                           \
        unary_repeated<asim::Op::Name>(dst, src, asim::mask_shape<T, isSetMask>(mask, repeatTime), params);            \
    }

#define ASIM_binary(Name)                                                                                              \
    template <typename T>                                                                                              \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,     \
                                const int32_t &count) {                                                                \
        binary_counted<asim::Op::Name>(dst, src0, src1, count);                                                        \
    }                                                                                                                  \
    template <typename T, bool isSetMask = true>                                                                       \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,     \
                                uint64_t mask, const uint8_t repeatTime, const BinaryRepeatParams &params) {           \
        binary_repeated<asim::Op::Name>(dst, src0, src1, asim::mask_shape<T, isSetMask>(mask, repeatTime), params);    \
    }                                                                                                                  \
    template <typename T, bool isSetMask = true>                                                                       \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,     \
                                uint64_t mask[], const uint8_t repeatTime, const BinaryRepeatParams &params) {         \
        binary_repeated<asim::Op::Name>(dst, src0, src1, asim::mask_shape<T, isSetMask>(mask, repeatTime), params);    \
    }

#define ASIM_with_scalar(Name)                                                                                         \
    template <typename T, bool isSetMask = true>                                                                       \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar,                 \
                                const int32_t &count) {                                                                \
        scalar_counted<asim::Op::Name, isSetMask>(dst, src, scalar, count);                                                       \
    }                                                                                                                  \
    template <typename T, bool isSetMask = true>                                                                       \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar, uint64_t mask,  \
                                const uint8_t repeatTime, const UnaryRepeatParams &params) {                           \
        scalar_repeated<asim::Op::Name>(dst, src, scalar, asim::mask_shape<T, isSetMask>(mask, repeatTime), params);   \
    }                                                                                                                  \
    template <typename T, bool isSetMask = true>                                                                       \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar, uint64_t mask[],\
                                const uint8_t repeatTime, const UnaryRepeatParams &params) {                           \
        scalar_repeated<asim::Op::Name>(dst, src, scalar, asim::mask_shape<T, isSetMask>(mask, repeatTime), params);   \
    }

#define ASIM_fused(Name) ASIM_binary(Name)

#define ELEMENTWISE(name, form, cost, types, result) ASIM_##form(name)
#include "asim/trace/instructions.def"

#undef ASIM_unary
#undef ASIM_binary
#undef ASIM_with_scalar
#undef ASIM_fused

// With roundEn, signed elements are rounded by the last bit that is shifted out.
template <typename T, bool isSetMask = true, typename Mask>
__aicore__ inline void ShiftRight(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar, Mask mask, const uint8_t repeatTime,
                                  const UnaryRepeatParams &params, bool roundEn) {
    const asim::Shape shape = asim::mask_shape<T, isSetMask>(mask, repeatTime);
    if constexpr (std::is_signed_v<T>) {
        require_type<asim::Op::ShiftRight, T>();
        if (roundEn) {
            return asim::shift_right_rounding<T>(asim::strided(dst, params.dstBlkStride, params.dstRepStride),
                                                 asim::strided(src, params.srcBlkStride, params.srcRepStride), scalar, shape);
        }
    }
    scalar_repeated<asim::Op::ShiftRight>(dst, src, scalar, shape, params);
}

// Of Axpy and MulAddDst.
template <typename T, typename U>
constexpr void require_accumulator() {
    static_assert((std::is_same_v<U, half> && (std::is_same_v<T, half> || std::is_same_v<T, float>)) || (std::is_same_v<U, float> && std::is_same_v<T, float>),
                  "Axpy and MulAddDst add half to half or float, and float to float");
}

// dst = src * scalar + dst
template <typename T, typename U>
__aicore__ inline void Axpy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const U &scalar, const int32_t &count) {
    require_accumulator<T, U>();
    asim::axpy<T, U>(asim::linear(dst), asim::linear(src), scalar, asim::counted_shape(count));
}

// dst = src0 * src1 + dst
template <typename T, typename U>
__aicore__ inline void MulAddDst(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1,
                                 const int32_t &count) {
    require_accumulator<T, U>();
    asim::mul_add_dst<T, U>(asim::linear(dst), asim::linear(src0), asim::linear(src1), asim::counted_shape(count));
}

template <typename T>
constexpr void require_fillable() {
    static_assert(asim::contains<T, asim::TypeList<half, bfloat16_t, float, int16_t, uint16_t, int32_t, uint32_t>>::value,
                  "Duplicate takes half, bfloat16_t, float, int16_t, uint16_t, int32_t and uint32_t on Atlas A2");
}

template <typename T>
__aicore__ inline void Duplicate(const LocalTensor<T> &dst, const T &scalar, const int32_t &count) {
    require_fillable<T>();
    asim::duplicate<T>(asim::linear(dst), scalar, asim::counted_shape(count));
}

template <typename T, bool isSetMask = true>
__aicore__ inline void Duplicate(const LocalTensor<T> &dst, const T &scalar, uint64_t mask, const uint8_t repeatTime,
                                 const uint16_t dstBlockStride, const uint8_t dstRepeatStride) {
    require_fillable<T>();
    asim::duplicate<T>(asim::strided(dst, dstBlockStride, dstRepeatStride), scalar,
                       asim::mask_shape<T, isSetMask>(mask, repeatTime));
}

template <typename T, bool isSetMask = true>
__aicore__ inline void Duplicate(const LocalTensor<T> &dst, const T &scalar, uint64_t mask[], const uint8_t repeatTime,
                                 const uint16_t dstBlockStride, const uint8_t dstRepeatStride) {
    require_fillable<T>();
    asim::duplicate<T>(asim::strided(dst, dstBlockStride, dstRepeatStride), scalar,
                       asim::mask_shape<T, isSetMask>(mask, repeatTime));
}

}  // namespace AscendC
