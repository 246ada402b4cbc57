// Compare and CompareScalar to packed bits, Select by packed bits, and the CMPMASK register.
#pragma once
#include "asim/api/vector_elementwise.h"
#include "asim/semantics/compare.h"

namespace AscendC {

using CMPMODE = asim::CompareMode;

enum class SELMODE : uint8_t { VSEL_CMPMASK_SPR = 0, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };

constexpr uint64_t MASK_PLACEHOLDER = 0;
constexpr uint64_t MASK_PLACEHOLDER_LIST[2] = {0, 0};

template <typename T, typename U>
constexpr void require_comparable() {
    static_assert(asim::contains<T, asim::TypeList<half, float, int32_t>>::value,
                  "Compare takes half, float or int32_t on Atlas A2");
    static_assert(std::is_integral_v<U>, "Compare writes packed bits to integer tensors");
}

template <typename T>
constexpr void require_selectable() {
    static_assert(asim::contains<T, asim::FloatTypes>::value, "Select takes half or float on Atlas A2");
}

// Only whole repeats of 256 B take part: elements after the last one are left out, as documented.
template <typename T>
constexpr uint32_t whole_repeats(uint32_t count) {
    return count / asim::lanes_per_repeat_of<T>;
}

template <typename T, typename U>
__aicore__ inline void Compare(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                               CMPMODE cmpMode, uint32_t count) {
    require_comparable<T, U>();
    asim::compares_whole_repeats(count, asim::lanes_per_repeat_of<T>);
    asim::compare<T>(dst.bytes(), asim::linear(src0), asim::linear(src1), cmpMode, whole_repeats<T>(count));
}

// The mask is ignored by the hardware: every lane of each repeat is compared.
template <typename T, typename U, bool isSetMask = true, typename Mask>
__aicore__ inline void Compare(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                               CMPMODE cmpMode, const Mask &, uint8_t repeatTime, const BinaryRepeatParams &params) {
    require_comparable<T, U>();
    asim::compare<T>(dst.bytes(), asim::strided(src0, params.src0BlkStride, params.src0RepStride),
                     asim::strided(src1, params.src1BlkStride, params.src1RepStride), cmpMode, repeatTime);
}

template <typename T, bool isSetMask = true, typename Mask>
__aicore__ inline void Compare(const LocalTensor<T> &src0, const LocalTensor<T> &src1, CMPMODE cmpMode, const Mask &mask,
                               const BinaryRepeatParams &params) {
    require_selectable<T>();
    asim::compare_to_register<T>(asim::strided(src0, params.src0BlkStride, params.src0RepStride),
                                 asim::strided(src1, params.src1BlkStride, params.src1RepStride), cmpMode,
                                 asim::mask_shape<T, isSetMask>(mask, 1));
}

template <typename T, typename U>
__aicore__ inline void CompareScalar(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const T src1Scalar,
                                     CMPMODE cmpMode, uint32_t count) {
    require_comparable<T, U>();
    asim::compares_whole_repeats(count, asim::lanes_per_repeat_of<T>);
    asim::compare_scalar<T>(dst.bytes(), asim::linear(src0), src1Scalar, cmpMode, whole_repeats<T>(count));
}

template <typename T, typename U, bool isSetMask = true, typename Mask>
__aicore__ inline void CompareScalar(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const T src1Scalar,
                                     CMPMODE cmpMode, const Mask &, uint8_t repeatTime, const UnaryRepeatParams &params) {
    require_comparable<T, U>();
    asim::compare_scalar<T>(dst.bytes(), asim::strided(src0, params.srcBlkStride, params.srcRepStride), src1Scalar,
                            cmpMode, repeatTime);
}

// The name of CompareScalar in newer toolkits.
template <typename T, typename U>
__aicore__ inline void Compares(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const T src1Scalar, CMPMODE cmpMode,
                                uint32_t count) {
    CompareScalar(dst, src0, src1Scalar, cmpMode, count);
}

template <typename T, typename U, bool isSetMask = true, typename Mask>
__aicore__ inline void Compares(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const T src1Scalar, CMPMODE cmpMode,
                                const Mask &mask, uint8_t repeatTime, const UnaryRepeatParams &params) {
    CompareScalar<T, U, isSetMask>(dst, src0, src1Scalar, cmpMode, mask, repeatTime, params);
}

template <typename U>
__aicore__ inline asim::Selector selector_of(const LocalTensor<U> &bits, SELMODE mode) {
    return {bits.bytes(), mode != SELMODE::VSEL_CMPMASK_SPR};
}

template <typename T, typename U>
__aicore__ inline void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask, const LocalTensor<T> &src0,
                              const LocalTensor<T> &src1, SELMODE selMode, uint32_t count) {
    require_selectable<T>();
    asim::select<T>(asim::linear(dst), selector_of(selMask, selMode), asim::linear(src0), asim::linear(src1),
                    asim::counted_shape(count));
}

template <typename T, typename U, bool isSetMask = true, typename Mask>
__aicore__ inline void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask, const LocalTensor<T> &src0,
                              const LocalTensor<T> &src1, SELMODE selMode, const Mask &mask, uint8_t repeatTime,
                              const BinaryRepeatParams &params) {
    require_selectable<T>();
    asim::select<T>(asim::strided(dst, params.dstBlkStride, params.dstRepStride), selector_of(selMask, selMode),
                    asim::strided(src0, params.src0BlkStride, params.src0RepStride),
                    asim::strided(src1, params.src1BlkStride, params.src1RepStride),
                    asim::mask_shape<T, isSetMask>(mask, repeatTime));
}

template <typename T, typename U>
__aicore__ inline void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask, const LocalTensor<T> &src0, T src1,
                              SELMODE selMode, uint32_t count) {
    require_selectable<T>();
    asim::select_scalar<T>(asim::linear(dst), selector_of(selMask, selMode), asim::linear(src0), src1,
                           asim::counted_shape(count));
}

template <typename T, typename U, bool isSetMask = true, typename Mask>
__aicore__ inline void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask, const LocalTensor<T> &src0, T src1,
                              SELMODE selMode, const Mask &mask, uint8_t repeatTime, const BinaryRepeatParams &params) {
    require_selectable<T>();
    asim::select_scalar<T>(asim::strided(dst, params.dstBlkStride, params.dstRepStride), selector_of(selMask, selMode),
                           asim::strided(src0, params.src0BlkStride, params.src0RepStride), src1,
                           asim::mask_shape<T, isSetMask>(mask, repeatTime));
}

// With the vector mask register, and the selection bits of the CMPMASK register.
template <typename T, SELMODE selMode>
__aicore__ inline void Select(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                              uint8_t repeatTime, const BinaryRepeatParams &params) {
    require_selectable<T>();
    static_assert(selMode == SELMODE::VSEL_CMPMASK_SPR, "this form of Select is simulated for VSEL_CMPMASK_SPR only");
    asim::select<T>(asim::strided(dst, params.dstBlkStride, params.dstRepStride), {},
                    asim::strided(src0, params.src0BlkStride, params.src0RepStride),
                    asim::strided(src1, params.src1BlkStride, params.src1RepStride), asim::register_shape(repeatTime));
}

// With the vector mask register, and the scalar of the CMPMASK register.
template <typename T, typename U>
__aicore__ inline void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask, const LocalTensor<T> &src0,
                              uint8_t repeatTime, const BinaryRepeatParams &params) {
    require_selectable<T>();
    asim::select_by_register_scalar<T>(asim::strided(dst, params.dstBlkStride, params.dstRepStride), selMask.bytes(),
                                       asim::strided(src0, params.src0BlkStride, params.src0RepStride),
                                       asim::register_shape(repeatTime));
}

template <typename T>
__aicore__ inline void GetCmpMask(const LocalTensor<T> &dst) {
    asim::store_compare_mask(dst.bytes());
}

template <typename T>
__aicore__ inline void SetCmpMask(const LocalTensor<T> &src) {
    asim::load_compare_mask(src.bytes());
}

}  // namespace AscendC
