// Tiling structures of the API library that operators nest into their own.
#pragma once

#include "register/tilingdata_base.h"

namespace optiling {

BEGIN_TILING_DATA_DEF(TCubeTiling)
    // the problem, and the part of one core
    TILING_DATA_FIELD_DEF(int32_t, usedCoreNum);
    TILING_DATA_FIELD_DEF(int32_t, M) TILING_DATA_FIELD_DEF(int32_t, N);
    TILING_DATA_FIELD_DEF(int32_t, Ka) TILING_DATA_FIELD_DEF(int32_t, Kb);
    TILING_DATA_FIELD_DEF(int32_t, singleCoreM) TILING_DATA_FIELD_DEF(int32_t, singleCoreN);
    TILING_DATA_FIELD_DEF(int32_t, singleCoreK) TILING_DATA_FIELD_DEF(int32_t, isBias);
    // blocks of one instruction, and how many of them stay in L1
    TILING_DATA_FIELD_DEF(int32_t, baseM) TILING_DATA_FIELD_DEF(int32_t, baseN);
    TILING_DATA_FIELD_DEF(int32_t, baseK) TILING_DATA_FIELD_DEF(int32_t, iterateOrder);
    TILING_DATA_FIELD_DEF(int32_t, depthA1) TILING_DATA_FIELD_DEF(int32_t, depthB1);
    TILING_DATA_FIELD_DEF(int32_t, stepM) TILING_DATA_FIELD_DEF(int32_t, stepN);
    TILING_DATA_FIELD_DEF(int32_t, stepKa) TILING_DATA_FIELD_DEF(int32_t, stepKb);
    TILING_DATA_FIELD_DEF(int32_t, depthAL1CacheUB) TILING_DATA_FIELD_DEF(int32_t, depthBL1CacheUB);
    TILING_DATA_FIELD_DEF(int32_t, dbL0A) TILING_DATA_FIELD_DEF(int32_t, dbL0B) TILING_DATA_FIELD_DEF(int32_t, dbL0C);
    // shared buffers
    TILING_DATA_FIELD_DEF(int32_t, transLength) TILING_DATA_FIELD_DEF(int32_t, shareMode);
    TILING_DATA_FIELD_DEF(int32_t, shareL1Size) TILING_DATA_FIELD_DEF(int32_t, shareL0CSize);
    TILING_DATA_FIELD_DEF(int32_t, shareUbSize);
    // batches
    TILING_DATA_FIELD_DEF(int32_t, batchM) TILING_DATA_FIELD_DEF(int32_t, batchN);
    TILING_DATA_FIELD_DEF(int32_t, singleBatchM) TILING_DATA_FIELD_DEF(int32_t, singleBatchN);
    TILING_DATA_FIELD_DEF(int32_t, ALayoutInfoB) TILING_DATA_FIELD_DEF(int32_t, ALayoutInfoS);
    TILING_DATA_FIELD_DEF(int32_t, ALayoutInfoN) TILING_DATA_FIELD_DEF(int32_t, ALayoutInfoG);
    TILING_DATA_FIELD_DEF(int32_t, ALayoutInfoD) TILING_DATA_FIELD_DEF(int32_t, BLayoutInfoB);
    TILING_DATA_FIELD_DEF(int32_t, BLayoutInfoS) TILING_DATA_FIELD_DEF(int32_t, BLayoutInfoN);
    TILING_DATA_FIELD_DEF(int32_t, BLayoutInfoG) TILING_DATA_FIELD_DEF(int32_t, BLayoutInfoD);
    TILING_DATA_FIELD_DEF(int32_t, CLayoutInfoB) TILING_DATA_FIELD_DEF(int32_t, CLayoutInfoS1);
    TILING_DATA_FIELD_DEF(int32_t, CLayoutInfoN) TILING_DATA_FIELD_DEF(int32_t, CLayoutInfoG);
    TILING_DATA_FIELD_DEF(int32_t, CLayoutInfoS2) TILING_DATA_FIELD_DEF(int32_t, BatchNum);
END_TILING_DATA_DEF;

// Of SoftMaxTiling and LogSoftMaxTiling.
#define ASIM_SOFTMAX_FIELDS                                                                             \
    TILING_DATA_FIELD_DEF(uint32_t, srcM) TILING_DATA_FIELD_DEF(uint32_t, srcK);                        \
    TILING_DATA_FIELD_DEF(uint32_t, srcSize) TILING_DATA_FIELD_DEF(uint32_t, outMaxM);                  \
    TILING_DATA_FIELD_DEF(uint32_t, outMaxK) TILING_DATA_FIELD_DEF(uint32_t, outMaxSize);               \
    TILING_DATA_FIELD_DEF(uint32_t, splitM) TILING_DATA_FIELD_DEF(uint32_t, splitK);                    \
    TILING_DATA_FIELD_DEF(uint32_t, splitSize) TILING_DATA_FIELD_DEF(uint32_t, reduceM);                \
    TILING_DATA_FIELD_DEF(uint32_t, reduceK) TILING_DATA_FIELD_DEF(uint32_t, reduceSize);               \
    TILING_DATA_FIELD_DEF(uint32_t, rangeM) TILING_DATA_FIELD_DEF(uint32_t, tailM);                     \
    TILING_DATA_FIELD_DEF(uint32_t, tailSplitSize) TILING_DATA_FIELD_DEF(uint32_t, tailReduceSize);

BEGIN_TILING_DATA_DEF(SoftMaxTiling)
    ASIM_SOFTMAX_FIELDS
END_TILING_DATA_DEF;

}  // namespace optiling
