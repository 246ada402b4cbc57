// Calls that headers compose of vector instructions, by the names that their faults carry.
#pragma once
#include <cstdint>

#include "asim/machine/export.h"

namespace asim {

#define ASIM_COMPOSED_CALLS(CALL)                                                                                       \
    CALL(ReduceSum) CALL(ReduceMax) CALL(ReduceMin) CALL(ReduceMean) CALL(ReduceProd) CALL(ReduceAll) CALL(ReduceAny)   \
    CALL(ReduceXorSum) CALL(Xor) CALL(Fmod) CALL(CumSum) CALL(Axpy) CALL(SwiGLU) CALL(GeGLU) CALL(ReGlu) CALL(LogSoftMax)          \
    CALL(SimpleSoftMax) CALL(SoftmaxFlash) CALL(SoftmaxFlashV3) CALL(LayerNorm) CALL(RmsNorm) CALL(GroupNorm)           \
    CALL(BatchNorm) CALL(DeepNorm) CALL(LayerNormGrad) CALL(LayerNormGradBeta) CALL(Normalize) CALL(WelfordUpdate)      \
    CALL(WelfordFinalize) CALL(TopK) CALL(AscendQuant) CALL(AscendAntiQuant) CALL(DropOut) CALL(TransData)              \
    CALL(Transpose) CALL(UnPad) CALL(Digamma) CALL(Lgamma) CALL(SoftMax) CALL(SoftmaxFlashV2) CALL(SoftmaxGrad)               \
    CALL(AdjustSoftMaxRes)

enum class ASIM_API_TYPE ComposedCall : uint8_t {
#define ASIM_NAME(Name) Name,
    ASIM_COMPOSED_CALLS(ASIM_NAME)
#undef ASIM_NAME
};

// What a page demands of a number beside the operands.
enum class ASIM_API_TYPE Demand : uint8_t {
    AtMost,             // elements to compute: at most as many as there are
    AboveZero,
    WholeBlocks,        // bytes of a row: a multiple of 32
    Overlap,            // operands that must not share memory: value is 1 where they do
    Equal,
};

}  // namespace asim
