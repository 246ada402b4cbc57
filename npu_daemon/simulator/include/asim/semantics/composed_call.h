// Calls that headers compose of vector instructions, by the names that their faults carry, and what their pages demand.
#pragma once
#include <cstdint>

#include "asim/machine/export.h"

namespace asim {

#define ASIM_COMPOSED_CALLS(CALL)                                                                                     \
    CALL(ReduceSum) CALL(ReduceMax) CALL(ReduceMin) CALL(ReduceMean) CALL(ReduceProd) CALL(ReduceAll) CALL(ReduceAny) \
    CALL(ReduceXorSum) CALL(Xor) CALL(Fmod) CALL(CumSum) CALL(Axpy) CALL(SwiGLU) CALL(GeGLU) CALL(ReGlu)              \
    CALL(LogSoftMax) CALL(SimpleSoftMax) CALL(LayerNorm) CALL(RmsNorm) CALL(GroupNorm) CALL(DeepNorm) CALL(Normalize) \
    CALL(WelfordUpdate) CALL(WelfordFinalize) CALL(TopK) CALL(AscendQuant) CALL(DropOut) CALL(Transpose)              \
    CALL(Digamma) CALL(Lgamma) CALL(SoftMax) CALL(SoftmaxFlashV2) CALL(SoftmaxGrad) CALL(AdjustSoftMaxRes) \
    CALL(LayerNormGrad) CALL(LayerNormGradBeta) CALL(BatchNorm) CALL(SoftmaxFlash) CALL(SoftmaxFlashV3) CALL(AscendAntiQuant) CALL(Pad) CALL(UnPad)    \
    CALL(TransData) CALL(BilinearInterpolation) CALL(Broadcast)

enum class ASIM_API_TYPE ComposedCall : uint8_t {
#define ASIM_NAME(Name) Name,
    ASIM_COMPOSED_CALLS(ASIM_NAME)
#undef ASIM_NAME
};

// Library calls with a rule for results that lie over operands.
enum class ASIM_API_TYPE LibraryContract : uint8_t {
#define CONTRACT(name, call, overlap, page) name,
#include "asim/check/contracts.def"
};

// Numbers that a page bounds.
enum class ASIM_API_TYPE ParameterRange : uint8_t {
#define RANGE(name, call, parameter, least, most, multiple, page) name,
#include "asim/check/contracts.def"
};

// Faults where a number is not in its range.
ASIM_API void check_range(ParameterRange which, int64_t value);

// Faults where a result of a library call lies over a source, as its row forbids.
ASIM_API void check_operands(LibraryContract call, const void *dst, uint64_t dst_bytes, const void *src, uint64_t src_bytes);
// Faults where an operand of a library call lies in its temporary buffer.
ASIM_API void check_beside_scratch(LibraryContract call, const void *operand, uint64_t bytes, const void *scratch, uint64_t scratch_bytes);

// What a page demands of a number beside the operands.
enum class ASIM_API_TYPE Demand : uint8_t {
    AtMost,             // elements to compute: at most as many as an operand has
    AboveZero,
    WholeBlocks,        // bytes of a row: a multiple of 32
    Equal,
    Multiple,           // of the bound
    Most,               // at most the bound
    Least,              // at least the bound
};

// The number that a demand is about, as the page names it.
#define ASIM_QUANTITIES(QUANTITY)                                                                                       \
    QUANTITY(Extent, "an extent") QUANTITY(CalCount, "calCount") QUANTITY(ScaleCount, "scaleCount")                     \
    QUANTITY(OffsetCount, "offsetCount") QUANTITY(Inner, "inner") QUANTITY(Outter, "outter") QUANTITY(N, "n")           \
    QUANTITY(K, "k") QUANTITY(Height, "param1, the height,") QUANTITY(Width, "param2, the width,")                      \
    QUANTITY(SrcLastAxis, "srcLastAxis") QUANTITY(MaskLastAxis, "maskLastAxis")                                         \
    QUANTITY(MaskBytes, "the number of bytes of maskLocal")                                                             \
    QUANTITY(Rows, "bLength * sLength") QUANTITY(HLength, "hLength") QUANTITY(OriginalHLength, "originalHLength")       \
    QUANTITY(InputRoundSize, "inputRoundSize")                                                                          \
    QUANTITY(ALength, "aLength") QUANTITY(RLength, "rLength") QUANTITY(RLengthWithPadding, "rLengthWithPadding")        \
    QUANTITY(MainBsLength, "mainBsLength") QUANTITY(MainBshLength, "mainBshLength") QUANTITY(RnLength, "rnLength")      \
    QUANTITY(AbLength, "abLength") QUANTITY(AbComputeLength, "abComputeLength") QUANTITY(TailCount, "tailCount")        \
    QUANTITY(HeadAndTail, "headCountLength + tailCountLength") QUANTITY(GroupedChannels, "g * d")                       \
    QUANTITY(GroupElements, "d * hw, the elements of a group,") QUANTITY(LeftPad, "leftPad of rows of whole data blocks") \
    QUANTITY(RightPad, "rightPad") QUANTITY(PaddedWidth, "leftPad + srcOriWidth + rightPad")                             \
    QUANTITY(PaddedColumns, "srcWidth - srcOriWidth, the columns to fill,") QUANTITY(SourceBytes, "the number of bytes of src") \
    QUANTITY(HorizontalRepeats, "hRepeat") QUANTITY(VerticalRepeats, "vRepeat") QUANTITY(VerticalOffset, "vROffset")      \
    QUANTITY(Rank, "rank") QUANTITY(SrcM, "srcM") QUANTITY(SrcK, "srcK") QUANTITY(OriSrcM, "oriSrcM")                      \
    QUANTITY(OriSrcK, "oriSrcK") QUANTITY(LoopCnt, "loopCnt") QUANTITY(SplitMeanCnt, "splitMeanCnt")

enum class ASIM_API_TYPE Quantity : uint8_t {
#define ASIM_NAME(Name, text) Name,
    ASIM_QUANTITIES(ASIM_NAME)
#undef ASIM_NAME
};

}  // namespace asim
