// Tiling structures of normalizations, sorting and LogSoftMax, with the same fields as the kernel's asim/api/library_tiling.h.
#pragma once

#include "register/tilingdata_base.h"
#include "tiling/library_tiling_data.h"

namespace optiling {

BEGIN_TILING_DATA_DEF(RmsNormTiling)
    TILING_DATA_FIELD_DEF(uint32_t, bLength) TILING_DATA_FIELD_DEF(uint32_t, sLength);
    TILING_DATA_FIELD_DEF(uint32_t, hLength) TILING_DATA_FIELD_DEF(uint32_t, originalHLength);
    TILING_DATA_FIELD_DEF(float, reciprocalOfHLength) TILING_DATA_FIELD_DEF(uint32_t, mainBshLength);
    TILING_DATA_FIELD_DEF(uint32_t, mainBsLength) TILING_DATA_FIELD_DEF(uint32_t, mainBsLengthAlign);
    TILING_DATA_FIELD_DEF(uint32_t, loopRound) TILING_DATA_FIELD_DEF(uint32_t, inputTailPos);
    TILING_DATA_FIELD_DEF(uint32_t, tailBshLength) TILING_DATA_FIELD_DEF(uint32_t, tailBsLength);
END_TILING_DATA_DEF;

#define ASIM_ROUNDS_OF_ROWS                                                                                            \
    TILING_DATA_FIELD_DEF(uint32_t, tmpBufSize) TILING_DATA_FIELD_DEF(uint32_t, oneTmpSize);                           \
    TILING_DATA_FIELD_DEF(uint32_t, firstTmpStartPos) TILING_DATA_FIELD_DEF(uint32_t, secondTmpStartPos);              \
    TILING_DATA_FIELD_DEF(uint32_t, thirdTmpStartPos) TILING_DATA_FIELD_DEF(uint32_t, loopRound);                      \
    TILING_DATA_FIELD_DEF(uint32_t, inputRoundSize) TILING_DATA_FIELD_DEF(uint32_t, inputTailSize);                    \
    TILING_DATA_FIELD_DEF(uint32_t, inputTailPos) TILING_DATA_FIELD_DEF(uint32_t, meanVarRoundSize);                   \
    TILING_DATA_FIELD_DEF(uint32_t, meanVarTailSize) TILING_DATA_FIELD_DEF(uint32_t, meanVarTailPos);
#define ASIM_LAYER_NORM_FIELDS                                                                                         \
    TILING_DATA_FIELD_DEF(uint32_t, bLength) TILING_DATA_FIELD_DEF(uint32_t, sLength);                                 \
    TILING_DATA_FIELD_DEF(uint32_t, hLength) TILING_DATA_FIELD_DEF(uint32_t, originalHLength);                         \
    TILING_DATA_FIELD_DEF(uint32_t, inputXSize) TILING_DATA_FIELD_DEF(uint32_t, meanVarSize);                          \
    TILING_DATA_FIELD_DEF(uint32_t, numberOfTmpBuf) TILING_DATA_FIELD_DEF(uint32_t, meanTmpTensorPos);                 \
    TILING_DATA_FIELD_DEF(uint32_t, meanTmpTensorSize) TILING_DATA_FIELD_DEF(uint32_t, varianceTmpTensorPos);          \
    TILING_DATA_FIELD_DEF(uint32_t, varianceTmpTensorSize);                                                            \
    ASIM_ROUNDS_OF_ROWS                                                                                                \
    TILING_DATA_FIELD_DEF(uint32_t, bshCurLength) TILING_DATA_FIELD_DEF(uint32_t, bsCurLength);                        \
    TILING_DATA_FIELD_DEF(float, lastDimValueBack);

BEGIN_TILING_DATA_DEF(LayerNormTiling)
    ASIM_LAYER_NORM_FIELDS
END_TILING_DATA_DEF;

BEGIN_TILING_DATA_DEF(DeepNormTiling)
    ASIM_LAYER_NORM_FIELDS
END_TILING_DATA_DEF;

BEGIN_TILING_DATA_DEF(LayerNormSeparateTiling)
    TILING_DATA_FIELD_DEF(uint32_t, aLength) TILING_DATA_FIELD_DEF(uint32_t, rLength);
    TILING_DATA_FIELD_DEF(uint32_t, halfAddRepeatTimes) TILING_DATA_FIELD_DEF(uint32_t, rHeadLength);
    TILING_DATA_FIELD_DEF(float, k2Rec) TILING_DATA_FIELD_DEF(float, k2RRec);
    TILING_DATA_FIELD_DEF(uint32_t, inputXSize) TILING_DATA_FIELD_DEF(uint32_t, meanVarSize);
    TILING_DATA_FIELD_DEF(uint32_t, numberOfTmpBuf) TILING_DATA_FIELD_DEF(uint32_t, varianceTmpTensorPos);
    TILING_DATA_FIELD_DEF(uint32_t, varianceTmpTensorSize);
    ASIM_ROUNDS_OF_ROWS
    TILING_DATA_FIELD_DEF(uint32_t, arCurLength) TILING_DATA_FIELD_DEF(uint32_t, aCurLength);
    TILING_DATA_FIELD_DEF(float, rValueBack);
END_TILING_DATA_DEF;
#undef ASIM_LAYER_NORM_FIELDS

BEGIN_TILING_DATA_DEF(GroupNormTiling)
    TILING_DATA_FIELD_DEF(uint32_t, n) TILING_DATA_FIELD_DEF(uint32_t, c) TILING_DATA_FIELD_DEF(uint32_t, hw);
    TILING_DATA_FIELD_DEF(uint32_t, g) TILING_DATA_FIELD_DEF(uint32_t, d) TILING_DATA_FIELD_DEF(uint32_t, hwAlignSize);
    TILING_DATA_FIELD_DEF(uint32_t, dhwAlignSize) TILING_DATA_FIELD_DEF(uint32_t, inputXSize);
    TILING_DATA_FIELD_DEF(uint32_t, meanVarSize) TILING_DATA_FIELD_DEF(uint32_t, numberOfTmpBuf);
    TILING_DATA_FIELD_DEF(uint32_t, meanTmpTensorPos) TILING_DATA_FIELD_DEF(uint32_t, meanTmpTensorSize);
    TILING_DATA_FIELD_DEF(uint32_t, varianceTmpTensorPos) TILING_DATA_FIELD_DEF(uint32_t, varianceTmpTensorSize);
    ASIM_ROUNDS_OF_ROWS
    TILING_DATA_FIELD_DEF(uint32_t, bshCurLength) TILING_DATA_FIELD_DEF(uint32_t, bsCurLength);
    TILING_DATA_FIELD_DEF(float, factor) TILING_DATA_FIELD_DEF(bool, smallShape);
END_TILING_DATA_DEF;

#undef ASIM_ROUNDS_OF_ROWS

BEGIN_TILING_DATA_DEF(ConfusionTransposeTiling)
    TILING_DATA_FIELD_DEF(uint32_t, param0) TILING_DATA_FIELD_DEF(uint32_t, param1);
    TILING_DATA_FIELD_DEF(uint32_t, param2) TILING_DATA_FIELD_DEF(uint32_t, param3);
    TILING_DATA_FIELD_DEF(uint32_t, param4) TILING_DATA_FIELD_DEF(uint32_t, param5);
    TILING_DATA_FIELD_DEF(uint32_t, param6) TILING_DATA_FIELD_DEF(uint32_t, param7);
    TILING_DATA_FIELD_DEF(uint32_t, param8) TILING_DATA_FIELD_DEF(uint32_t, param9);
    TILING_DATA_FIELD_DEF(uint32_t, param10) TILING_DATA_FIELD_DEF(uint32_t, param11);
    TILING_DATA_FIELD_DEF(uint32_t, param12) TILING_DATA_FIELD_DEF(uint32_t, param13);
    TILING_DATA_FIELD_DEF(uint32_t, param14) TILING_DATA_FIELD_DEF(uint32_t, param15);
    TILING_DATA_FIELD_DEF(uint32_t, param16) TILING_DATA_FIELD_DEF(uint32_t, param17);
END_TILING_DATA_DEF;

BEGIN_TILING_DATA_DEF(LogSoftMaxTiling)
    ASIM_SOFTMAX_FIELDS
END_TILING_DATA_DEF;

BEGIN_TILING_DATA_DEF(TopkTiling)
    TILING_DATA_FIELD_DEF(int32_t, tmpLocalSize) TILING_DATA_FIELD_DEF(int32_t, allDataSize);
    TILING_DATA_FIELD_DEF(int32_t, innerDataSize) TILING_DATA_FIELD_DEF(uint32_t, sortRepeat);
    TILING_DATA_FIELD_DEF(int32_t, mrgSortRepeat) TILING_DATA_FIELD_DEF(int32_t, kAlignFourBytes);
    TILING_DATA_FIELD_DEF(int32_t, kAlignTwoBytes) TILING_DATA_FIELD_DEF(int32_t, maskOffset);
    TILING_DATA_FIELD_DEF(int32_t, maskVreducev2FourBytes) TILING_DATA_FIELD_DEF(int32_t, maskVreducev2TwoBytes);
    TILING_DATA_FIELD_DEF(int32_t, mrgSortSrc1offset) TILING_DATA_FIELD_DEF(int32_t, mrgSortSrc2offset);
    TILING_DATA_FIELD_DEF(int32_t, mrgSortSrc3offset) TILING_DATA_FIELD_DEF(int32_t, mrgSortTwoQueueSrc1Offset);
    TILING_DATA_FIELD_DEF(int32_t, mrgFourQueueTailPara1) TILING_DATA_FIELD_DEF(int32_t, mrgFourQueueTailPara2);
    TILING_DATA_FIELD_DEF(int32_t, srcIndexOffset) TILING_DATA_FIELD_DEF(uint32_t, copyUbToUbBlockCount);
    TILING_DATA_FIELD_DEF(int32_t, topkMrgSrc1MaskSizeOffset) TILING_DATA_FIELD_DEF(int32_t, topkNSmallSrcIndexOffset);
    TILING_DATA_FIELD_DEF(uint32_t, vreduceValMask0) TILING_DATA_FIELD_DEF(uint32_t, vreduceValMask1);
    TILING_DATA_FIELD_DEF(uint32_t, vreduceIdxMask0) TILING_DATA_FIELD_DEF(uint32_t, vreduceIdxMask1);
    TILING_DATA_FIELD_DEF(uint16_t, vreducehalfValMask0) TILING_DATA_FIELD_DEF(uint16_t, vreducehalfValMask1);
    TILING_DATA_FIELD_DEF(uint16_t, vreducehalfValMask2) TILING_DATA_FIELD_DEF(uint16_t, vreducehalfValMask3);
    TILING_DATA_FIELD_DEF(uint16_t, vreducehalfValMask4) TILING_DATA_FIELD_DEF(uint16_t, vreducehalfValMask5);
    TILING_DATA_FIELD_DEF(uint16_t, vreducehalfValMask6) TILING_DATA_FIELD_DEF(uint16_t, vreducehalfValMask7);
END_TILING_DATA_DEF;

}  // namespace optiling
