// Reductions over pairs, data blocks, repeats and whole tensors.
#pragma once
#include <cstring>

#include "asim/api/mask.h"
#include "asim/api/tensor.h"
#include "asim/machine/registers.h"
#include "asim/numeric/rounding.h"
#include "asim/semantics/reduce.h"

namespace AscendC {

using asim::ReduceOrder;

enum class ReduceType : uint8_t { SUM, MAX, MIN };

constexpr asim::Reduction reduction_of(ReduceType type) { return static_cast<asim::Reduction>(type); }

template <typename T>
constexpr void require_reducible() {
    static_assert(asim::contains<T, asim::FloatTypes>::value, "reductions take half or float on Atlas A2");
}

template <typename T>
__aicore__ inline void whole_reduction(ReduceType type, const LocalTensor<T> &dst, const LocalTensor<T> &src,
                                       const asim::Shape &shape, int32_t dst_repeat_stride, int32_t src_block_stride,
                                       int32_t src_repeat_stride, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX) {
    require_reducible<T>();
    asim::whole_reduce<T>(reduction_of(type), {dst.bytes(), static_cast<uint32_t>(dst_repeat_stride)},
                          asim::strided(src, static_cast<uint32_t>(src_block_stride), static_cast<uint32_t>(src_repeat_stride)),
                          shape, order);
}

template <typename T>
__aicore__ inline void block_reduction(ReduceType type, const LocalTensor<T> &dst, const LocalTensor<T> &src,
                                       const asim::Shape &shape, int32_t dst_repeat_stride, int32_t src_block_stride,
                                       int32_t src_repeat_stride) {
    require_reducible<T>();
    asim::block_reduce<T>(reduction_of(type), {dst.bytes(), static_cast<uint32_t>(dst_repeat_stride)},
                          asim::strided(src, static_cast<uint32_t>(src_block_stride), static_cast<uint32_t>(src_repeat_stride)),
                          shape);
}

template <typename T>
__aicore__ inline void pair_reduction(const LocalTensor<T> &dst, const LocalTensor<T> &src, const asim::Shape &shape,
                                      int32_t dst_repeat_stride, int32_t src_block_stride, int32_t src_repeat_stride) {
    require_reducible<T>();
    asim::pair_reduce_sum<T>({dst.bytes(), static_cast<uint32_t>(dst_repeat_stride)},
                             asim::strided(src, static_cast<uint32_t>(src_block_stride), static_cast<uint32_t>(src_repeat_stride)),
                             shape);
}

// A mask argument is a number of leading lanes or an array with one bit a lane.
template <typename T, bool isSetMask = true, typename Mask>
__aicore__ inline void WholeReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const Mask &mask,
                                      const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride,
                                      const int32_t srcRepStride) {
    whole_reduction<T>(ReduceType::SUM, dst, src, asim::mask_shape<T, isSetMask>(mask, repeatTime), dstRepStride,
                       srcBlkStride, srcRepStride);
}

template <typename T, bool isSetMask = true, typename Mask>
__aicore__ inline void WholeReduceMax(const LocalTensor<T> &dst, const LocalTensor<T> &src, const Mask &mask,
                                      const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride,
                                      const int32_t srcRepStride, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX) {
    whole_reduction<T>(ReduceType::MAX, dst, src, asim::mask_shape<T, isSetMask>(mask, repeatTime), dstRepStride,
                       srcBlkStride, srcRepStride, order);
}

template <typename T, bool isSetMask = true, typename Mask>
__aicore__ inline void WholeReduceMin(const LocalTensor<T> &dst, const LocalTensor<T> &src, const Mask &mask,
                                      const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride,
                                      const int32_t srcRepStride, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX) {
    whole_reduction<T>(ReduceType::MIN, dst, src, asim::mask_shape<T, isSetMask>(mask, repeatTime), dstRepStride,
                       srcBlkStride, srcRepStride, order);
}

template <typename T, bool isSetMask = true, typename Mask>
__aicore__ inline void BlockReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t repeatTime,
                                      const Mask &mask, const int32_t dstRepStride, const int32_t srcBlkStride,
                                      const int32_t srcRepStride) {
    block_reduction<T>(ReduceType::SUM, dst, src, asim::mask_shape<T, isSetMask>(mask, repeatTime), dstRepStride,
                       srcBlkStride, srcRepStride);
}

template <typename T, bool isSetMask = true, typename Mask>
__aicore__ inline void BlockReduceMax(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t repeatTime,
                                      const Mask &mask, const int32_t dstRepStride, const int32_t srcBlkStride,
                                      const int32_t srcRepStride) {
    block_reduction<T>(ReduceType::MAX, dst, src, asim::mask_shape<T, isSetMask>(mask, repeatTime), dstRepStride,
                       srcBlkStride, srcRepStride);
}

template <typename T, bool isSetMask = true, typename Mask>
__aicore__ inline void BlockReduceMin(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t repeatTime,
                                      const Mask &mask, const int32_t dstRepStride, const int32_t srcBlkStride,
                                      const int32_t srcRepStride) {
    block_reduction<T>(ReduceType::MIN, dst, src, asim::mask_shape<T, isSetMask>(mask, repeatTime), dstRepStride,
                       srcBlkStride, srcRepStride);
}

template <typename T, bool isSetMask = true, typename Mask>
__aicore__ inline void PairReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t repeatTime,
                                     const Mask &mask, const int32_t dstRepStride, const int32_t srcBlkStride,
                                     const int32_t srcRepStride) {
    pair_reduction<T>(dst, src, asim::mask_shape<T, isSetMask>(mask, repeatTime), dstRepStride, srcBlkStride, srcRepStride);
}

// The same instructions under the names of newer toolkits.
template <ReduceType type, typename T, typename U, bool isSetMask = true, typename Mask>
__aicore__ inline void ReduceRepeat(const LocalTensor<T> &dst, const LocalTensor<U> &src, const Mask &mask,
                                    const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride,
                                    const int32_t srcRepStride, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX) {
    whole_reduction<T>(type, dst, src, asim::mask_shape<T, isSetMask>(mask, repeatTime), dstRepStride, srcBlkStride,
                       srcRepStride, order);
}

template <ReduceType type, typename T, typename U, bool isSetMask = true, typename Mask>
__aicore__ inline void ReduceDataBlock(const LocalTensor<T> &dst, const LocalTensor<U> &src, const Mask &mask,
                                       const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride,
                                       const int32_t srcRepStride) {
    block_reduction<T>(type, dst, src, asim::mask_shape<T, isSetMask>(mask, repeatTime), dstRepStride, srcBlkStride,
                       srcRepStride);
}

template <ReduceType type, typename T, typename U, bool isSetMask = true, typename Mask>
__aicore__ inline void ReducePairElem(const LocalTensor<T> &dst, const LocalTensor<U> &src, const Mask &mask,
                                      const int32_t repeatTime, const int32_t dstRepStride, const int32_t srcBlkStride,
                                      const int32_t srcRepStride) {
    static_assert(type == ReduceType::SUM, "ReducePairElem adds");
    pair_reduction<T>(dst, src, asim::mask_shape<T, isSetMask>(mask, repeatTime), dstRepStride, srcBlkStride, srcRepStride);
}

template <typename T, typename Mask>
__aicore__ inline void ReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &work,
                                 const Mask &mask, const int32_t repeatTime, const int32_t srcRepStride) {
    require_reducible<T>();
    asim::reduce_sum_repeats<T>(dst.bytes(), asim::strided(src, 1, static_cast<uint32_t>(srcRepStride)), work.bytes(),
                                asim::mask_shape<T, true>(mask, repeatTime));
}

template <typename T, typename Mask>
__aicore__ inline void ReduceMax(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &work,
                                 const Mask &mask, const int32_t repeatTime, const int32_t srcRepStride,
                                 bool calIndex = false) {
    require_reducible<T>();
    asim::reduce_extreme<T>(asim::Reduction::Max, dst.bytes(),
                            asim::strided(src, 1, static_cast<uint32_t>(srcRepStride)), work.bytes(),
                            asim::mask_shape<T, true>(mask, repeatTime), calIndex);
}

template <typename T, typename Mask>
__aicore__ inline void ReduceMin(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &work,
                                 const Mask &mask, const int32_t repeatTime, const int32_t srcRepStride,
                                 bool calIndex = false) {
    require_reducible<T>();
    asim::reduce_extreme<T>(asim::Reduction::Min, dst.bytes(),
                            asim::strided(src, 1, static_cast<uint32_t>(srcRepStride)), work.bytes(),
                            asim::mask_shape<T, true>(mask, repeatTime), calIndex);
}

// Sums of repeats; the destination's block stride has no meaning, because a repeat leaves one element.
template <typename T, bool isSetMask = true>
__aicore__ inline void RepeatReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t repeatTime,
                                       const int32_t mask, const int32_t dstBlkStride, const int32_t srcBlkStride,
                                       const int32_t dstRepStride, const int32_t srcRepStride) {
    (void)dstBlkStride;
    whole_reduction<T>(ReduceType::SUM, dst, src, asim::mask_shape<T, isSetMask>(mask, repeatTime), dstRepStride,
                       srcBlkStride, srcRepStride);
}

// Sum of the first `count` elements; the work tensor is not needed on Atlas A2.
template <typename T, bool isSetMask = true>
__aicore__ inline void ReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &work,
                                 const int32_t count) {
    require_reducible<T>();
    (void)work;
    asim::reduce_sum<T>(dst.bytes(), asim::linear(src),
                        asim::counted_shape<isSetMask>(count));
}

template <typename T>
__aicore__ inline void ReduceMax(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &work,
                                 const int32_t count, bool calIndex = false) {
    require_reducible<T>();
    asim::reduce_extreme<T>(asim::Reduction::Max, dst.bytes(), asim::linear(src), work.bytes(),
                            asim::counted_shape(count), calIndex);
}

template <typename T>
__aicore__ inline void ReduceMin(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &work,
                                 const int32_t count, bool calIndex = false) {
    require_reducible<T>();
    asim::reduce_extreme<T>(asim::Reduction::Min, dst.bytes(), asim::linear(src), work.bytes(),
                            asim::counted_shape(count), calIndex);
}

// Extreme over all repeats of the last WholeReduceMax or WholeReduceMin, and its index as bits of T.
template <typename T>
__aicore__ inline void GetReduceMaxMinCount(T &maxMinValue, T &maxMinIndex) {
    using Bits = typename asim::FloatBits<T>::Type;
    asim::read_register(asim::VectorRegister::Extreme);
    maxMinValue = asim::from_float_bits<T>(static_cast<Bits>(asim::reduced_value()));
    maxMinIndex = asim::from_float_bits<T>(static_cast<Bits>(asim::reduced_index()));
}

template <typename T>
__aicore__ inline void GetReduceMaxMinCount(uint32_t &maxMinValue, uint32_t &maxMinIndex) {
    asim::read_register(asim::VectorRegister::Extreme);
    maxMinValue = asim::reduced_value();
    maxMinIndex = asim::reduced_index();
}

template <typename T>
__aicore__ inline void GetReduceRepeatMaxMinSpr(T &maxMinValue, T &maxMinIndex) {
    GetReduceMaxMinCount<T>(maxMinValue, maxMinIndex);
}

// Result of the last ReduceSum over a count.
template <typename T>
__aicore__ inline T GetAccVal() {
    using Bits = typename asim::FloatBits<T>::Type;
    asim::read_register(asim::VectorRegister::Sum);
    return asim::from_float_bits<T>(static_cast<Bits>(asim::accumulated_bits()));
}

template <typename T>
__aicore__ inline T GetReduceRepeatSumSpr() {
    return GetAccVal<T>();
}

}  // namespace AscendC
