// Plans of normalizations, sorting and other library calls as host code hands them to its kernel. Same fields in the same order as
// in the host's tiling/library_plan_data.h.
#pragma once
#include "asim/api/cube_tiling.h"

struct alignas(8) RmsNormTiling {
    uint32_t bLength, sLength, hLength, originalHLength;
    float reciprocalOfHLength;
    uint32_t mainBshLength, mainBsLength, mainBsLengthAlign, loopRound, inputTailPos, tailBshLength, tailBsLength;
};

struct alignas(8) LayerNormTiling {
    uint32_t bLength, sLength, hLength, originalHLength, inputXSize, meanVarSize, numberOfTmpBuf;
    uint32_t meanTmpTensorPos, meanTmpTensorSize, varianceTmpTensorPos, varianceTmpTensorSize, tmpBufSize, oneTmpSize;
    uint32_t firstTmpStartPos, secondTmpStartPos, thirdTmpStartPos, loopRound, inputRoundSize, inputTailSize, inputTailPos;
    uint32_t meanVarRoundSize, meanVarTailSize, meanVarTailPos, bshCurLength, bsCurLength;
    float lastDimValueBack;
};

struct alignas(8) DeepNormTiling : LayerNormTiling {};

struct alignas(8) LayerNormSeparateTiling {
    uint32_t aLength, rLength, halfAddRepeatTimes, rHeadLength;
    float k2Rec, k2RRec;
    uint32_t inputXSize, meanVarSize, numberOfTmpBuf, varianceTmpTensorPos, varianceTmpTensorSize, tmpBufSize, oneTmpSize;
    uint32_t firstTmpStartPos, secondTmpStartPos, thirdTmpStartPos, loopRound, inputRoundSize, inputTailSize, inputTailPos;
    uint32_t meanVarRoundSize, meanVarTailSize, meanVarTailPos, arCurLength, aCurLength;
    float rValueBack;
};

struct alignas(8) LogSoftMaxTiling : SoftMaxTiling {};

struct alignas(8) TopkTiling {
    int32_t tmpLocalSize, allDataSize, innerDataSize;
    uint32_t sortRepeat;
    int32_t mrgSortRepeat, kAlignFourBytes, kAlignTwoBytes, maskOffset, maskVreducev2FourBytes, maskVreducev2TwoBytes;
    int32_t mrgSortSrc1offset, mrgSortSrc2offset, mrgSortSrc3offset, mrgSortTwoQueueSrc1Offset, mrgFourQueueTailPara1;
    int32_t mrgFourQueueTailPara2, srcIndexOffset;
    uint32_t copyUbToUbBlockCount;
    int32_t topkMrgSrc1MaskSizeOffset, topkNSmallSrcIndexOffset;
    uint32_t vreduceValMask0, vreduceValMask1, vreduceIdxMask0, vreduceIdxMask1;
    uint16_t vreducehalfValMask0, vreducehalfValMask1, vreducehalfValMask2, vreducehalfValMask3;
    uint16_t vreducehalfValMask4, vreducehalfValMask5, vreducehalfValMask6, vreducehalfValMask7;
};

namespace AscendC::tiling {
using ::DeepNormTiling;
using ::LayerNormSeparateTiling;
using ::LayerNormTiling;
using ::LogSoftMaxTiling;
using ::RmsNormTiling;
using ::TopkTiling;
}
