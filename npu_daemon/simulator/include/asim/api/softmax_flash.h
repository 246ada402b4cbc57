// Softmax of rows that come in pieces, of float, and the gradient of softmax: ND.
#pragma once
#include "asim/api/cube_tiling.h"
#include "asim/api/softmax.h"

namespace AscendC {

struct SoftmaxConfig {
    bool isCheckTiling = true;
    uint32_t oriSrcM = 0;
    uint32_t oriSrcK = 0;
};
constexpr SoftmaxConfig SOFTMAX_DEFAULT_CFG = {};

// From the call, or what was noted for the tensor, or what the host planned.
template <typename T>
__aicore__ inline SoftmaxRows rows_of(asim::ComposedCall call, const LocalTensor<T> &tensor, const SoftMaxTiling &tiling,
                                      const SoftMaxShapeInfo &shape) {
    const ShapeInfo noted = tensor.GetShapeInfo();
    if ((shape.srcM != 0 && shape.srcK != 0) || noted.shapeDim == 0 || noted.originalShapeDim == 0) return planned_rows(call, tiling, shape);
    SoftMaxShapeInfo found{1, noted.shape[noted.shapeDim - 1], 1, noted.originalShape[noted.originalShapeDim - 1]};
    for (uint8_t i = 0; i + 1 < noted.shapeDim; ++i) found.srcM *= noted.shape[i];
    for (uint8_t i = 0; i + 1 < noted.originalShapeDim; ++i) found.oriSrcM *= noted.originalShape[i];
    return planned_rows(call, tiling, found);
}

// Of a plan, the simulated library reads the extents.
__aicore__ constexpr SoftMaxTiling SoftMaxFlashV2TilingFuncImpl(uint32_t srcM, uint32_t srcK, uint32_t, uint32_t, uint32_t, bool = false,
                                                                bool = false, bool = false, bool = false) {
    SoftMaxTiling tiling{};
    tiling.srcM = srcM;
    tiling.srcK = srcK;
    tiling.srcSize = srcM * srcK;
    return tiling;
}
__aicore__ constexpr SoftMaxTiling SoftMaxFlashV2TilingFunc(const SoftMaxShapeInfo &shape, uint32_t bytes1, uint32_t bytes2,
                                                            uint32_t scratch, bool update = false, bool basic = false) {
    return SoftMaxFlashV2TilingFuncImpl(shape.srcM, shape.srcK, bytes1, bytes2, scratch, update, basic);
}

template <typename T, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig &config = SOFTMAX_DEFAULT_CFG>
__aicore__ inline void SoftmaxFlashV2(const LocalTensor<T> &dst, const LocalTensor<T> &sum, const LocalTensor<T> &max,
                                      const LocalTensor<T> &src, const LocalTensor<T> &factor, const LocalTensor<T> &sumBefore,
                                      const LocalTensor<T> &maxBefore, const LocalTensor<uint8_t> &sharedTmpBuffer,
                                      const SoftMaxTiling &tiling, const SoftMaxShapeInfo &shape = {}) {
    static_assert(std::is_same_v<T, float> && !isDataFormatNZ, "SoftmaxFlashV2 is simulated for ND tensors of float");
    const SoftmaxRows rows = rows_of(asim::ComposedCall::SoftmaxFlashV2, src, tiling, shape);
    const asim::SoftmaxPieces pieces{sum.bytes(), max.bytes(), sumBefore.bytes(), maxBefore.bytes(), factor.bytes(), isUpdate};
    asim::softmax_piece(dst.bytes(), src.bytes(), pieces, rows.shape, rows.stride, scratch_of(sharedTmpBuffer));
}
template <typename T, bool isUpdate = false, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig &config = SOFTMAX_DEFAULT_CFG>
__aicore__ inline void SoftmaxFlashV2(const LocalTensor<T> &dst, const LocalTensor<T> &sum, const LocalTensor<T> &max,
                                      const LocalTensor<T> &src, const LocalTensor<T> &factor, const LocalTensor<T> &sumBefore,
                                      const LocalTensor<T> &maxBefore, const SoftMaxTiling &tiling, const SoftMaxShapeInfo &shape = {}) {
    LocalTensor<uint8_t> scratch;
    PopStackBuffer<uint8_t, TPosition::LCM>(scratch);
    SoftmaxFlashV2<T, isUpdate>(dst, sum, max, src, factor, sumBefore, maxBefore, scratch, tiling, shape);
}

template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false>
__aicore__ inline void SoftmaxGrad(const LocalTensor<T> &dst, const LocalTensor<T> &grad, const LocalTensor<T> &src,
                                   const LocalTensor<uint8_t> &sharedTmpBuffer, const SoftMaxTiling &tiling, bool isFront = false,
                                   const SoftMaxShapeInfo &shape = {}) {
    require_math_type<T>();
    static_assert(!isDataFormatNZ, "SoftmaxGrad is simulated for ND tensors");
    const SoftmaxRows rows = rows_of(asim::ComposedCall::SoftmaxGrad, src, tiling, shape);
    asim::softmax_gradient<T>(dst.bytes(), grad.bytes(), src.bytes(), isFront, rows.shape, rows.stride, scratch_of(sharedTmpBuffer));
}
template <typename T, bool isReuseSource = false, bool isDataFormatNZ = false>
__aicore__ inline void SoftmaxGrad(const LocalTensor<T> &dst, const LocalTensor<T> &grad, const LocalTensor<T> &src,
                                   const SoftMaxTiling &tiling, bool isFront = false, const SoftMaxShapeInfo &shape = {}) {
    LocalTensor<uint8_t> scratch;
    PopStackBuffer<uint8_t, TPosition::LCM>(scratch);
    SoftmaxGrad<T>(dst, grad, src, scratch, tiling, isFront, shape);
}

}  // namespace AscendC
