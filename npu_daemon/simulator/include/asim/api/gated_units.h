// SwiGLU, GeGLU and ReGlu: one source times an activation of the other, half in float (asc-devkit, adv_api/detail/activation).
#pragma once
#include "asim/api/library_steps.h"

namespace AscendC {
namespace composed_calls {

// Of half operands: the gate, the result, and the other source where it has a place of its own.
struct SwishGate {
    static constexpr ComposedCall call = ComposedCall::SwiGLU;
    static constexpr asim::LibraryContract contract = asim::LibraryContract::SwiGLU;
    static constexpr uint32_t pieces = 3;
    float beta;

    void operator()(const Steps<float> &steps, const LocalTensor<float> &dst, const LocalTensor<float> &x) const {
        steps.muls(dst, x, -beta);
        steps.exp(dst, dst);
        steps.adds(dst, dst, 1.0f);
        steps.div(dst, x, dst);
    }
};

// x / (1 + e^(-0.0713548 x (x^2 + 22.36386))): Gelu by tanh.
struct GeGLUGate {
    static constexpr ComposedCall call = ComposedCall::GeGLU;
    static constexpr asim::LibraryContract contract = asim::LibraryContract::GeGLU;
    static constexpr uint32_t pieces = 2;

    void operator()(const Steps<float> &steps, const LocalTensor<float> &dst, const LocalTensor<float> &x) const {
        steps.mul(dst, x, x);
        steps.adds(dst, dst, 22.363860002236e0f);
        steps.mul(dst, dst, x);
        steps.muls(dst, dst, -0.0713548162726f);
        steps.exp(dst, dst);
        steps.adds(dst, dst, 1.0f);
        steps.div(dst, x, dst);
    }
};

struct ReGluGate {
    static constexpr ComposedCall call = ComposedCall::ReGlu;
    static constexpr asim::LibraryContract contract = asim::LibraryContract::ReGlu;
    static constexpr uint32_t pieces = 3;

    void operator()(const Steps<float> &steps, const LocalTensor<float> &dst, const LocalTensor<float> &x) const {
        steps.maxs(dst, x, 0.0f);
    }
};

// dst = src0 * gate(src1)
template <typename T, typename Gate>
void gated(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, const LocalTensor<uint8_t> &scratch,
           uint32_t count, const Gate &gate) {
    if constexpr (std::is_same_v<T, float>) {
        const Steps<float> steps(count);
        gate(steps, dst, src1);
        steps.mul(dst, src0, dst);
    } else {
        const Pieces<float> piece = divide<float>(Gate::call, scratch, Gate::pieces);
        const LocalTensor<float> result = piece[1], other = piece[Gate::pieces == 3 ? 2 : 0];
        in_rounds(count, piece.elems, [&](uint32_t done, uint32_t elems) {
            const Steps<float> steps(elems);
            steps.cast(piece[0], src1[done]);
            gate(steps, result, piece[0]);
            steps.cast(other, src0[done]);
            steps.mul(result, other, result);
            constexpr RoundMode mode = std::is_same_v<T, half> ? RoundMode::CAST_NONE : RoundMode::CAST_RINT;
            Steps<T>(elems).cast(dst[done], result, mode);
        });
    }
}

template <typename T, typename Gate>
void checked_gate(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                  const LocalTensor<uint8_t> &scratch, uint32_t count, const Gate &gate) {
    asim::check_demand(Gate::call, Demand::AtMost, count, src0.GetSize());
    asim::check_demand(Gate::call, Demand::AtMost, count, src1.GetSize());
    check_operands(Gate::contract, dst, count, scratch, src0, src1);
    gated(dst, src0, src1, scratch, count, gate);
}

}  // namespace composed_calls

#define ASIM_GATED(Name)                                                                                                  \
    template <typename T, bool isReuseSource = false>                                                                     \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,        \
                                const LocalTensor<uint8_t> &sharedTmpBuffer, uint32_t calCount) {                         \
        composed_calls::checked_gate(dst, src0, src1, sharedTmpBuffer, calCount, composed_calls::Name##Gate{});                                        \
    }                                                                                                                     \
    template <typename T, bool isReuseSource = false>                                                                     \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,        \
                                const LocalTensor<uint8_t> &sharedTmpBuffer) {                                            \
        composed_calls::checked_gate(dst, src0, src1, sharedTmpBuffer, src0.GetSize(), composed_calls::Name##Gate{});                                  \
    }                                                                                                                     \
    template <typename T, bool isReuseSource = false>                                                                     \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,        \
                                uint32_t calCount) {                                                                      \
        composed_calls::checked_gate(dst, src0, src1, composed_calls::free_scratch(), calCount, composed_calls::Name##Gate{});                                \
    }                                                                                                                     \
    template <typename T, bool isReuseSource = false>                                                                     \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1) {      \
        composed_calls::checked_gate(dst, src0, src1, composed_calls::free_scratch(), src0.GetSize(), composed_calls::Name##Gate{});                          \
    }
ASIM_GATED(GeGLU)
ASIM_GATED(ReGlu)
#undef ASIM_GATED

template <typename T, bool isReuseSource = false>
__aicore__ inline void SwiGLU(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                              const float &scalarValue, const LocalTensor<uint8_t> &sharedTmpBuffer, const uint32_t calCount) {
    require_math_type<T>();
    composed_calls::checked_gate(dst, src0, src1, sharedTmpBuffer, calCount, composed_calls::SwishGate{scalarValue});
}
template <typename T, bool isReuseSource = false>
__aicore__ inline void SwiGLU(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                              const float &scalarValue, const LocalTensor<uint8_t> &sharedTmpBuffer) {
    SwiGLU<T>(dst, src0, src1, scalarValue, sharedTmpBuffer, src0.GetSize());
}
template <typename T, bool isReuseSource = false>
__aicore__ inline void SwiGLU(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                              const float &scalarValue, const uint32_t calCount) {
    SwiGLU<T>(dst, src0, src1, scalarValue, composed_calls::free_scratch(), calCount);
}
template <typename T, bool isReuseSource = false>
__aicore__ inline void SwiGLU(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                              const float &scalarValue) {
    SwiGLU<T>(dst, src0, src1, scalarValue, composed_calls::free_scratch(), src0.GetSize());
}

}  // namespace AscendC
