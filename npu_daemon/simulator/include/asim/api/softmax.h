// SoftMax over the last axis of ND tensors.
#pragma once
#include "asim/api/math.h"
#include "asim/semantics/softmax.h"

namespace AscendC {

// Extents of the tensor, and of the part that counts.
struct SoftMaxShapeInfo {
    uint32_t srcM = 0;
    uint32_t srcK = 0;
    uint32_t oriSrcM = 0;
    uint32_t oriSrcK = 0;
};

// Rows and columns that count, and elements from row to row.
struct SoftmaxRows {
    asim::Matrix shape;
    uint32_t stride;
};

// Every call of this family takes its rows from here: no more of them count than there are, or columns of one.
__aicore__ inline SoftmaxRows counted_rows(asim::ComposedCall call, const SoftMaxShapeInfo &shape) {
    asim::check_counting(call, {shape.oriSrcM, shape.oriSrcK}, {shape.srcM, shape.srcK});
    return {{shape.srcM, shape.oriSrcK ? shape.oriSrcK : shape.srcK}, shape.srcK};
}

// Without a shape, the one that the host planned for. `Tiling` is SoftMaxTiling as the operator's tiling data has it.
template <typename Tiling>
__aicore__ inline SoftmaxRows planned_rows(asim::ComposedCall call, const Tiling &tiling, const SoftMaxShapeInfo &shape) {
    if (shape.srcM != 0 && shape.srcK != 0) return counted_rows(call, shape);
    asim::check_demand(call, asim::Demand::AboveZero, tiling.srcM != 0 && tiling.srcK != 0, 0);
    return {{tiling.srcM, tiling.srcK}, tiling.srcK};
}

template <typename T, typename Tiling>
__aicore__ inline void softmax_rows(const LocalTensor<T> &dst, uint8_t *sums, uint8_t *maxima, const LocalTensor<T> &src,
                                    asim::Scratch scratch, const Tiling &tiling, const SoftMaxShapeInfo &shape) {
    require_math_type<T>();
    const SoftmaxRows rows = planned_rows(asim::ComposedCall::SoftMax, tiling, shape);
    asim::softmax<T>(dst.bytes(), sums, maxima, src.bytes(), rows.shape, rows.stride, scratch);
}

template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false, typename Tiling>
__aicore__ inline void SoftMax(const LocalTensor<T> &dst, const LocalTensor<T> &src, const Tiling &tiling,
                               const SoftMaxShapeInfo &shape = {}) {
    static_assert(!isDataFormatNZ, "SoftMax is simulated for ND tensors");
    softmax_rows<T>(dst, nullptr, nullptr, src, asim::remaining_scratch(), tiling, shape);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false, typename Tiling>
__aicore__ inline void SoftMax(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &sharedTmpBuffer,
                               const Tiling &tiling, const SoftMaxShapeInfo &shape = {}) {
    static_assert(!isDataFormatNZ, "SoftMax is simulated for ND tensors");
    softmax_rows<T>(dst, nullptr, nullptr, src, scratch_of(sharedTmpBuffer), tiling, shape);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false, typename Tiling>
__aicore__ inline void SoftMax(const LocalTensor<T> &dst, const LocalTensor<T> &sum, const LocalTensor<T> &max,
                               const LocalTensor<T> &src, const Tiling &tiling, const SoftMaxShapeInfo &shape = {}) {
    static_assert(!isDataFormatNZ, "SoftMax is simulated for ND tensors");
    softmax_rows<T>(dst, sum.bytes(), max.bytes(), src, asim::remaining_scratch(), tiling, shape);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false, typename Tiling>
__aicore__ inline void SoftMax(const LocalTensor<T> &dst, const LocalTensor<T> &sum, const LocalTensor<T> &max,
                               const LocalTensor<T> &src, const LocalTensor<uint8_t> &sharedTmpBuffer, const Tiling &tiling,
                               const SoftMaxShapeInfo &shape = {}) {
    static_assert(!isDataFormatNZ, "SoftMax is simulated for ND tensors");
    softmax_rows<T>(dst, sum.bytes(), max.bytes(), src, scratch_of(sharedTmpBuffer), tiling, shape);
}

}  // namespace AscendC
