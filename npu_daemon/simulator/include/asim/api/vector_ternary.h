// Axpy and MulAddDst over repeats with a mask. Lanes of a repeat are those of the wider type.
#pragma once
#include "asim/api/vector_elementwise.h"

namespace AscendC {

template <typename T, typename U, bool isSetMask = true, typename Mask>
__aicore__ inline void Axpy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const U &scalarValue, const Mask &mask,
                            const uint8_t repeatTime, const UnaryRepeatParams &params) {
    require_accumulator<T, U>();
    asim::axpy<T, U>(asim::strided(dst, params.dstBlkStride, params.dstRepStride),
                     asim::strided(src, params.srcBlkStride, params.srcRepStride), scalarValue,
                     asim::mask_shape<T, isSetMask>(mask, repeatTime));
}

template <typename T, typename U, bool isSetMask = true, typename Mask>
__aicore__ inline void MulAddDst(const LocalTensor<T> &dst, const LocalTensor<U> &src0, const LocalTensor<U> &src1,
                                 const Mask &mask, const uint8_t repeatTime, const BinaryRepeatParams &params) {
    require_accumulator<T, U>();
    asim::mul_add_dst<T, U>(asim::strided(dst, params.dstBlkStride, params.dstRepStride),
                            asim::strided(src0, params.src0BlkStride, params.src0RepStride),
                            asim::strided(src1, params.src1BlkStride, params.src1RepStride),
                            asim::mask_shape<T, isSetMask>(mask, repeatTime));
}

}  // namespace AscendC
