// Plans of library calls as host code hands them to its kernel. Same fields in the same order as in tiling/library_tiling_data.h;
// kernels that receive one check the layout when they are built.
#pragma once
#include <cstdint>

namespace AscendC::tiling {

struct alignas(8) TCubeTiling {
    int32_t usedCoreNum;
    int32_t M, N, Ka, Kb;
    int32_t singleCoreM, singleCoreN, singleCoreK, isBias;
    int32_t baseM, baseN, baseK, iterateOrder;
    int32_t depthA1, depthB1, stepM, stepN, stepKa, stepKb;
    int32_t depthAL1CacheUB, depthBL1CacheUB;
    int32_t dbL0A, dbL0B, dbL0C;
    int32_t transLength, shareMode, shareL1Size, shareL0CSize, shareUbSize;
    int32_t batchM, batchN, singleBatchM, singleBatchN;
    int32_t ALayoutInfoB, ALayoutInfoS, ALayoutInfoN, ALayoutInfoG, ALayoutInfoD;
    int32_t BLayoutInfoB, BLayoutInfoS, BLayoutInfoN, BLayoutInfoG, BLayoutInfoD;
    int32_t CLayoutInfoB, CLayoutInfoS1, CLayoutInfoN, CLayoutInfoG, CLayoutInfoS2;
    int32_t BatchNum;
};

struct alignas(8) SoftMaxTiling {
    uint32_t srcM, srcK, srcSize, outMaxM, outMaxK, outMaxSize, splitM, splitK, splitSize, reduceM, reduceK, reduceSize;
    uint32_t rangeM, tailM, tailSplitSize, tailReduceSize;
};

}  // namespace AscendC::tiling
