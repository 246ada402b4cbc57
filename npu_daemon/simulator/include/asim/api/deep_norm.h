// DeepNorm: LayerNorm of x * alpha + gx, in rows [B, S, H] of which the first elements count (asc-devkit,
// adv_api/detail/normalization/deepnorm).
#pragma once
#include "asim/api/layer_norm.h"
#include "asim/api/rms_norm.h"

namespace AscendC {
namespace composed_calls {

// x * alpha + gx of the rows at hand, in float.
inline void residual(const LocalTensor<float> &dst, const LocalTensor<float> &x, const LocalTensor<float> &gx,
                     const NormScratch &tmp, float alpha, uint32_t elements) {
    const Steps<float> steps(elements);
    steps.muls(tmp.b, x, alpha);
    steps.add(dst, gx, tmp.b);
}
inline void residual(const LocalTensor<float> &dst, const LocalTensor<half> &x, const LocalTensor<half> &gx,
                     const NormScratch &tmp, float alpha, uint32_t elements) {
    const Steps<float> steps(elements);
    steps.cast(dst, x);
    steps.cast(tmp.c, gx);
    steps.muls(dst, dst, alpha);
    steps.add(dst, tmp.c, dst);
}

// What a plan says about its rows: how far apart they begin, how many of their elements count, and one over that.
struct NormShape {
    uint32_t columns, counting;
    float reciprocal;
};

// The sums of the counting elements of rows, in `sums` and, one after another, in `packed`, which may be the source. Rows of
// which one element counts have no sum, as in the published library.
inline void sum_counting(const LocalTensor<float> &sums, const LocalTensor<float> &packed, const LocalTensor<float> &src,
                         uint32_t rows, const NormShape &shape) {
    for (uint32_t row = 0; row < rows; ++row) {
        LocalTensor<float> from = src[row * shape.columns], to = packed[row * shape.columns];
        for (uint32_t left = shape.counting; left > 1; left = DivCeil(left, kFloatsOfRepeat)) {
            counted(left, [&] {
                if (left <= kFloatsOfRepeat) {
                    RepeatReduceSum<float, false>(sums[row], from, 1, kRegisterMask, 1, 1, 1, 8);
                    PipeBarrier<PIPE_V>();
                    to = packed[row];
                }
                RepeatReduceSum<float, false>(to, from, 1, kRegisterMask, 1, 1, 1, 8);
                PipeBarrier<PIPE_V>();
            });
            from = to;
        }
    }
}

// dst = (x - mean) / sqrt(variance + epsilon) of the rows in `tmp.a`, in `tmp.c`; means are read by the scalar unit.
inline void normalize_counting(const LocalTensor<float> &mean, const LocalTensor<float> &variance, const NormScratch &tmp,
                               float epsilon, uint32_t rows, const NormShape &shape) {
    const Steps<float> all(rows * shape.columns), each(rows);
    all.muls(tmp.c, tmp.a, shape.reciprocal);
    sum_counting(mean, tmp.c, tmp.c, rows, shape);
    await<HardEvent::V_S>();
    for (uint32_t row = 0; row < rows; ++row) {
        const float shift = -mean.GetValue(row);
        Adds(tmp.b[row * shape.columns], tmp.a[row * shape.columns], shift, static_cast<int32_t>(shape.columns));
    }
    PipeBarrier<PIPE_V>();
    all.mul(tmp.c, tmp.b, tmp.b);
    all.muls(tmp.a, tmp.c, shape.reciprocal);
    sum_counting(variance, tmp.c, tmp.a, rows, shape);
    each.adds(tmp.a, tmp.c, epsilon);
    each.fill(tmp.c, 1.0f);
    each.sqrt(tmp.a, tmp.a);
    each.div(tmp.a, tmp.c, tmp.a);
    scale_rows(tmp.c, tmp.b, tmp.a, rows, shape.columns);
}

template <typename T>
void check_deep_norm(const LocalTensor<uint8_t> &scratch, const DeepNormTiling &tiling) {
    constexpr uint32_t kMostColumns = 2040;         // as the page has it
    constexpr ComposedCall call = ComposedCall::DeepNorm;
    check_layer_norm<T>(call, scratch, tiling);
    asim::check_demand(call, Demand::Most, tiling.hLength, kMostColumns, Quantity::HLength);
    asim::check_demand(call, Demand::AboveZero, tiling.originalHLength, 0, Quantity::OriginalHLength);
    asim::check_demand(call, Demand::Most, tiling.originalHLength, tiling.hLength, Quantity::OriginalHLength);
}

}  // namespace composed_calls

template <typename T, bool isReuseSrc = false, bool isBasicBlock = false>
__aicore__ inline void DeepNorm(const LocalTensor<T> &dstLocal, const LocalTensor<T> &meanLocal, const LocalTensor<T> &rstdLocal,
                                const LocalTensor<T> &srcLocal, const LocalTensor<T> &gxLocal, const LocalTensor<T> &betaLocal,
                                const LocalTensor<T> &gammaLocal, const LocalTensor<uint8_t> &sharedTmpBuffer, const T alpha,
                                const T epsilon, const DeepNormTiling &tiling) {
    composed_calls::check_deep_norm<T>(sharedTmpBuffer, tiling);
    const LocalTensor<float> base = sharedTmpBuffer.template ReinterpretCast<float>();
    const composed_calls::NormScratch tmp{base[tiling.firstTmpStartPos], base[tiling.secondTmpStartPos],
                                          base[tiling.thirdTmpStartPos]};
    LocalTensor<float> means, variances;
    if constexpr (std::is_same_v<T, half>) means = base[tiling.meanTmpTensorPos], variances = base[tiling.varianceTmpTensorPos];
    else means = meanLocal, variances = rstdLocal;
    const uint32_t rows = tiling.bLength * tiling.sLength;
    const composed_calls::NormShape shape{tiling.hLength, tiling.originalHLength, tiling.lastDimValueBack};
    composed_calls::in_rounds(rows, tiling.inputRoundSize / shape.columns, [&](uint32_t done, uint32_t number) {
        const uint32_t offset = done * shape.columns, elements = number * shape.columns;
        composed_calls::residual(tmp.a, srcLocal[offset], gxLocal[offset], tmp, static_cast<float>(alpha), elements);
        composed_calls::normalize_counting(means[done], variances[done], tmp, static_cast<float>(epsilon), number, shape);
        composed_calls::finish_rows<T>(dstLocal[offset], gammaLocal, betaLocal, tmp, number, shape.columns);
    });
    if constexpr (std::is_same_v<T, half>) {
        composed_calls::Steps<half>(rows).cast(meanLocal, means);
        composed_calls::Steps<half>(rows).cast(rstdLocal, variances);
    }
}
template <typename T, bool isReuseSrc = false, bool isBasicBlock = false>
__aicore__ inline void DeepNorm(const LocalTensor<T> &dstLocal, const LocalTensor<T> &meanLocal, const LocalTensor<T> &rstdLocal,
                                const LocalTensor<T> &srcLocal, const LocalTensor<T> &gxLocal, const LocalTensor<T> &betaLocal,
                                const LocalTensor<T> &gammaLocal, const T alpha, const T epsilon, const DeepNormTiling &tiling) {
    DeepNorm<T>(dstLocal, meanLocal, rstdLocal, srcLocal, gxLocal, betaLocal, gammaLocal, composed_calls::free_scratch(), alpha,
                epsilon, tiling);
}

}  // namespace AscendC
