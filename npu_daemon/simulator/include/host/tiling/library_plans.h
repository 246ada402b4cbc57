// Planning functions of normalizations, LogSoftMax and TopK. A plan is made in rounds of as many rows as the scratch buffer
// holds; `Tiling` is the class of the host (optiling) or the plain structure of AscendC::tiling.
#pragma once

#include <algorithm>
#include <type_traits>

#include "graph/tensor.h"
#include "tiling/library_plan_data.h"
#include "tiling/platform/platform_ascendc.h"

namespace AscendC {

#ifndef ASIM_TOPK_MODE      // programs of one file include the kernel's headers, too
#define ASIM_TOPK_MODE
enum class TopKMode { TOPK_NORMAL, TOPK_NSMALL };
#endif

namespace scratch_plans {

// Sets a field of either kind of structure.
#define ASIM_PUT(tiling, field, value)                                                                     \
    do {                                                                                                   \
        if constexpr (std::is_base_of_v<optiling::TilingDef, Tiling>) tiling.set_##field(value);           \
        else tiling.field = value;                                                                         \
    } while (false)

constexpr uint32_t kBlockBytes = 32, kBlockFloats = 8;

inline uint32_t aligned(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit * unit; }

inline uint32_t extent(const ge::Shape &shape, size_t dimension) {
    return dimension < shape.GetDimNum() ? static_cast<uint32_t>(shape.GetDim(dimension)) : 0;
}

// Rows, and elements from row to row, of shapes [B, S, H, ..].
struct Rows {
    uint32_t number, stride;
    explicit Rows(const ge::Shape &shape) : number(extent(shape, 0) * extent(shape, 1)), stride(extent(shape, 2)) {}
};

// Three rows of floats, or as many of all, with mean and variance of each row.
inline void layer_norm_scratch(const Rows &rows, uint32_t &most, uint32_t &least) {
    const uint32_t numbers = 2 * aligned(rows.number * 4, kBlockBytes);
    least = 3 * aligned(rows.stride * 4, kBlockBytes) + numbers;
    most = 3 * aligned(rows.number * rows.stride * 4, kBlockBytes) + numbers;
}

// How rows are worked on: `buffers` times those of a round lie behind `first` floats.
template <typename Tiling>
bool put_rounds(Tiling &tiling, const Rows &rows, uint32_t scratch_bytes, uint32_t first, uint32_t buffers) {
    const uint32_t floats = scratch_bytes / 4, elements = rows.number * rows.stride;
    if (rows.stride == 0 || rows.number == 0 || floats <= first) return false;
    const uint32_t round = std::min((floats - first) / buffers / rows.stride * rows.stride, elements);
    if (round == 0) return false;
    const uint32_t rest = elements % round;
    ASIM_PUT(tiling, inputXSize, elements);
    ASIM_PUT(tiling, meanVarSize, rows.number);
    ASIM_PUT(tiling, numberOfTmpBuf, buffers);
    ASIM_PUT(tiling, tmpBufSize, floats);
    ASIM_PUT(tiling, oneTmpSize, round);
    ASIM_PUT(tiling, firstTmpStartPos, first);
    ASIM_PUT(tiling, secondTmpStartPos, first + round);
    ASIM_PUT(tiling, thirdTmpStartPos, buffers > 2 ? first + 2 * round : 0);
    ASIM_PUT(tiling, loopRound, elements / round);
    ASIM_PUT(tiling, inputRoundSize, round);
    ASIM_PUT(tiling, inputTailSize, rest);
    ASIM_PUT(tiling, inputTailPos, elements - rest);
    ASIM_PUT(tiling, meanVarRoundSize, round / rows.stride);
    ASIM_PUT(tiling, meanVarTailSize, rest / rows.stride);
    ASIM_PUT(tiling, meanVarTailPos, rows.number - rest / rows.stride);
    return true;
}

template <typename Tiling>
bool put_layer_norm(Tiling &tiling, const ge::Shape &shape, uint32_t counting_columns, uint32_t scratch_bytes,
                    uint32_t type_bytes) {
    const Rows rows(shape);
    const uint32_t numbers = aligned(rows.number, kBlockFloats);
    if (!put_rounds(tiling, rows, scratch_bytes, type_bytes == 4 ? 0 : 2 * numbers, 3)) return false;
    ASIM_PUT(tiling, bLength, extent(shape, 0));
    ASIM_PUT(tiling, sLength, extent(shape, 1));
    ASIM_PUT(tiling, hLength, rows.stride);
    ASIM_PUT(tiling, originalHLength, counting_columns);
    ASIM_PUT(tiling, meanTmpTensorPos, 0);
    ASIM_PUT(tiling, meanTmpTensorSize, numbers);
    ASIM_PUT(tiling, varianceTmpTensorPos, numbers);
    ASIM_PUT(tiling, varianceTmpTensorSize, numbers);
    const uint32_t fitting = (scratch_bytes / 4 - (type_bytes == 4 ? 0 : 2 * numbers)) / 3 / rows.stride;
    const uint32_t at_once = std::min(fitting, rows.number);
    ASIM_PUT(tiling, bsCurLength, at_once);
    ASIM_PUT(tiling, bshCurLength, at_once * rows.stride);
    ASIM_PUT(tiling, lastDimValueBack, 1.0f / static_cast<float>(counting_columns));
    return true;
}

}  // namespace scratch_plans

inline void GetLayerNormMaxMinTmpSize(const ge::Shape &shape, uint32_t, bool, uint32_t &maxValue, uint32_t &minValue) {
    scratch_plans::layer_norm_scratch(scratch_plans::Rows(shape), maxValue, minValue);
}
// The fourth extent is that of the columns that count.
template <typename Tiling>
void GetLayerNormNDTilingInfo(const ge::Shape &shape, uint32_t scratch, uint32_t typeSize, bool, Tiling &tiling) {
    scratch_plans::put_layer_norm(tiling, shape, scratch_plans::extent(shape, shape.GetDimNum() > 3 ? 3 : 2), scratch, typeSize);
}
template <typename Tiling>
void GetLayerNormNDTillingInfo(const ge::Shape &shape, uint32_t scratch, uint32_t typeSize, bool reuses, Tiling &tiling) {
    GetLayerNormNDTilingInfo(shape, scratch, typeSize, reuses, tiling);
}

inline bool GetDeepNormMaxMinTmpSize(const ge::Shape &shape, uint32_t, bool, bool isBasicBlock, uint32_t &maxValue,
                                     uint32_t &minValue) {
    const scratch_plans::Rows rows(shape);
    if (isBasicBlock && (rows.stride % 64 != 0 || rows.number % 8 != 0)) return false;
    scratch_plans::layer_norm_scratch(rows, maxValue, minValue);
    return true;
}
template <typename Tiling>
bool GetDeepNormTilingInfo(const ge::Shape &shape, const ge::Shape &originShape, uint32_t scratch, uint32_t typeSize, bool, bool,
                           Tiling &tiling) {
    return scratch_plans::put_layer_norm(tiling, shape, scratch_plans::extent(originShape, 2), scratch, typeSize);
}

// Two rows of floats for each that is worked on; factors and terms of half take two more.
inline void GetNormalizeMaxMinTmpSize(const ge::Shape &shape, uint32_t typeSizeU, uint32_t typeSizeT, bool, bool, bool,
                                      uint32_t &maxValue, uint32_t &minValue) {
    const uint32_t block = scratch_plans::kBlockBytes / (typeSizeT == 0 ? 1 : typeSizeT);
    const uint32_t row = scratch_plans::aligned(scratch_plans::extent(shape, 1), block) * 4;
    const uint32_t factors = typeSizeU == 2 ? 2 * row : 0;
    minValue = std::max(2 * row + factors,
                        scratch_plans::aligned(scratch_plans::extent(shape, 0) * 4, scratch_plans::kBlockBytes));
    maxValue = std::max(2 * row * scratch_plans::extent(shape, 0) + factors, minValue);
}
inline void GetLayerNormMaxMinTmpSize(const ge::Shape &shape, uint32_t typeSize, bool isReuseSource, bool isComputeRstd,
                                      bool isOnlyOutput, uint32_t &maxValue, uint32_t &minValue) {
    GetNormalizeMaxMinTmpSize(shape, typeSize, typeSize, isReuseSource, isComputeRstd, isOnlyOutput, maxValue, minValue);
    const uint32_t variances = scratch_plans::aligned(scratch_plans::extent(shape, 0) * 4, scratch_plans::kBlockBytes);
    maxValue += variances;
    minValue += variances;
}
template <typename Tiling>
void GetLayerNormNDTilingInfo(const ge::Shape &shape, uint32_t scratch, uint32_t typeSize, bool, bool, Tiling &tiling) {
    const uint32_t number = scratch_plans::extent(shape, 0), columns = scratch_plans::extent(shape, 1);
    scratch_plans::Rows rows(shape);
    rows.number = number;
    rows.stride = scratch_plans::aligned(columns, scratch_plans::kBlockBytes / typeSize);
    const uint32_t variances = scratch_plans::aligned(number, scratch_plans::kBlockFloats);
    if (!scratch_plans::put_rounds(tiling, rows, scratch, variances, 2)) return;
    ASIM_PUT(tiling, aLength, number);
    ASIM_PUT(tiling, rLength, columns);
    ASIM_PUT(tiling, varianceTmpTensorPos, 0);
    ASIM_PUT(tiling, varianceTmpTensorSize, variances);
    const uint32_t at_once = std::min((scratch / 4 - variances) / 2 / rows.stride, number);
    ASIM_PUT(tiling, aCurLength, at_once);
    ASIM_PUT(tiling, arCurLength, at_once * rows.stride);
    ASIM_PUT(tiling, rValueBack, 1.0f / static_cast<float>(columns));
}

inline void GetWelfordUpdateMaxMinTmpSize(const ge::Shape &shape, uint32_t typeSizeT, uint32_t, bool, bool, uint32_t &maxValue,
                                          uint32_t &minValue) {
    const uint32_t buffers = typeSizeT == 2 ? 3 : 2, elements = scratch_plans::extent(shape, 0) * scratch_plans::extent(shape, 1);
    minValue = buffers * 256;
    maxValue = buffers * scratch_plans::aligned(elements * 4, 256);
}

// Sums of means and of variances of up to 64 rounds, and two tensors of floats of a round.
inline void GetWelfordFinalizeMaxMinTmpSize(const ge::Shape &shape, uint32_t, bool, uint32_t &maxValue, uint32_t &minValue) {
    constexpr uint32_t repeat = 256;
    minValue = 4 * repeat;
    const uint32_t values = scratch_plans::extent(shape, shape.GetDimNum() - 1);
    maxValue = 2 * repeat + std::max(2 * repeat, 2 * scratch_plans::aligned(values * 4, repeat));
}

// A row of floats, two of half operands, with a data block of sums; or all rows.
inline bool GetRmsNormMaxMinTmpSize(const ge::Shape &shape, uint32_t typeSize, uint32_t &maxValue, uint32_t &minValue,
                                    bool isBasicBlock = false) {
    const scratch_plans::Rows rows(shape);
    if (isBasicBlock && (rows.stride % 64 != 0 || rows.number % 8 != 0 || rows.stride >= 2048)) return false;
    const uint32_t row_floats = rows.stride * (typeSize == 2 ? 2 : 1);
    minValue = (row_floats + scratch_plans::kBlockFloats) * 4;
    maxValue = (rows.number * row_floats + scratch_plans::aligned(rows.number, scratch_plans::kBlockFloats)) * 4;
    return true;
}
template <typename Tiling>
bool GetRmsNormTilingInfo(const ge::Shape &shape, const ge::Shape &originShape, uint32_t scratch, uint32_t typeSize,
                          Tiling &tiling, bool isBasicBlock = false) {
    constexpr uint32_t most_rows = 255;
    uint32_t most = 0, least = 0;
    const scratch_plans::Rows rows(shape);
    const uint32_t columns = scratch_plans::extent(originShape, 2);
    if (!GetRmsNormMaxMinTmpSize(shape, typeSize, most, least, isBasicBlock) || scratch < least || rows.number == 0) return false;
    if (columns == 0 || columns > rows.stride || rows.stride * typeSize % scratch_plans::kBlockBytes != 0) return false;
    const uint32_t row_floats = rows.stride * (typeSize == 2 ? 2 : 1);
    uint32_t at_once = 1;
    const auto floats_of = [&](uint32_t number) {
        return number * row_floats + scratch_plans::aligned(number, scratch_plans::kBlockFloats);
    };
    while (at_once < rows.number && scratch / 4 >= floats_of(at_once + 1)) ++at_once;
    if (isBasicBlock && at_once >= 8) at_once = at_once / 8 * 8;
    if (!isBasicBlock) at_once = std::min(at_once, most_rows);
    const uint32_t rest = rows.number % at_once;
    ASIM_PUT(tiling, bLength, scratch_plans::extent(shape, 0));
    ASIM_PUT(tiling, sLength, scratch_plans::extent(shape, 1));
    ASIM_PUT(tiling, hLength, rows.stride);
    ASIM_PUT(tiling, originalHLength, columns);
    ASIM_PUT(tiling, reciprocalOfHLength, 1.0f / static_cast<float>(columns));
    ASIM_PUT(tiling, mainBshLength, at_once * rows.stride);
    ASIM_PUT(tiling, mainBsLength, at_once);
    ASIM_PUT(tiling, mainBsLengthAlign, scratch_plans::aligned(at_once, scratch_plans::kBlockFloats));
    ASIM_PUT(tiling, loopRound, rows.number / at_once);
    ASIM_PUT(tiling, inputTailPos, (rows.number - rest) * rows.stride);
    ASIM_PUT(tiling, tailBshLength, rest * rows.stride);
    ASIM_PUT(tiling, tailBsLength, rest);
    return true;
}

template <typename Tiling>
void LogSoftMaxTilingFunc(const ge::Shape &shape, uint32_t, uint32_t, Tiling &tiling) {
    const uint32_t columns = scratch_plans::extent(shape, shape.GetDimNum() - 1);
    const auto elements = static_cast<uint32_t>(shape.GetShapeSize());
    ASIM_PUT(tiling, srcM, columns == 0 ? 0 : elements / columns);
    ASIM_PUT(tiling, srcK, columns);
    ASIM_PUT(tiling, srcSize, elements);
}

// A group's values three times, and a data block for the mean and the variance of each.
inline void GetGroupNormMaxMinTmpSize(const ge::Shape &shape, uint32_t, bool, uint32_t groupNum, uint32_t &maxValue,
                                      uint32_t &minValue) {
    const uint32_t channels = scratch_plans::extent(shape, 1), groups = groupNum == 0 ? 1 : groupNum;
    const uint32_t elements = channels / groups * scratch_plans::extent(shape, 2) * scratch_plans::extent(shape, 3);
    minValue = maxValue = (3 * elements + 2 * 8 * scratch_plans::extent(shape, 0) * groups) * 4;
}
template <typename Tiling>
void GetGroupNormNDTilingInfo(const ge::Shape &shape, uint32_t, uint32_t, bool, uint32_t groupNum, Tiling &tiling) {
    const uint32_t channels = scratch_plans::extent(shape, 1), groups = groupNum == 0 ? 1 : groupNum;
    const uint32_t number = scratch_plans::extent(shape, 0);
    const uint32_t area = scratch_plans::extent(shape, 2) * scratch_plans::extent(shape, 3);
    ASIM_PUT(tiling, n, number);
    ASIM_PUT(tiling, c, channels);
    ASIM_PUT(tiling, hw, area);
    ASIM_PUT(tiling, g, groups);
    ASIM_PUT(tiling, d, channels / groups);
    ASIM_PUT(tiling, inputXSize, number * channels * area);
    ASIM_PUT(tiling, meanVarSize, number * groups);
    ASIM_PUT(tiling, factor, 1.0f / static_cast<float>(channels / groups * area));
}

// Of the transpositions with a plan, that of matrices works without a temporary buffer.
inline void GetTransposeMaxMinTmpSize(const ge::Shape &, uint32_t, uint32_t, uint32_t &maxValue, uint32_t &minValue) {
    maxValue = minValue = 0;
}
inline void GetConfusionTransposeMaxMinTmpSize(const ge::Shape &, uint32_t, uint32_t, uint32_t &maxValue, uint32_t &minValue) {
    maxValue = minValue = 0;
}
template <typename Tiling>
void GetTransposeTilingInfo(const ge::Shape &shape, uint32_t, uint32_t, uint32_t, Tiling &tiling) {
    ASIM_PUT(tiling, param1, scratch_plans::extent(shape, 0));
    ASIM_PUT(tiling, param2, scratch_plans::extent(shape, 1));
}
template <typename Tiling>
void GetConfusionTransposeTilingInfo(const ge::Shape &shape, uint32_t scratch, uint32_t typeSize, uint32_t kind, Tiling &tiling) {
    GetTransposeTilingInfo(shape, scratch, typeSize, kind, tiling);
}

// The mask's bytes as half and float, with room to spare as the published library has it.
inline void GetDropOutMaxMinTmpSize(const ge::Shape &shape, uint32_t, bool, uint32_t &maxValue, uint32_t &minValue) {
    minValue = 2 * 256;
    maxValue = std::max(minValue, static_cast<uint32_t>(shape.GetShapeSize()) * 8);
}
inline uint32_t GetDropOutMinTmpSize(const ge::Shape &, uint32_t, bool) { return 2 * 256; }
inline uint32_t GetDropOutMaxTmpSize(const ge::Shape &shape, uint32_t typeSize, bool reuses) {
    uint32_t most = 0, least = 0;
    GetDropOutMaxMinTmpSize(shape, typeSize, reuses, most, least);
    return most;
}

// Two copies of a row's records of 8 bytes, or one of all rows with masks and values of the other sign; and indices.
inline bool GetTopKMaxMinTmpSize(const platform_ascendc::PlatformAscendC &, int32_t inner, int32_t outter, bool, bool isInitIndex,
                                 TopKMode mode, bool isLargest, uint32_t, uint32_t &maxValue, uint32_t &minValue) {
    const bool small = mode == TopKMode::TOPK_NSMALL;
    const auto elements = static_cast<uint32_t>(small ? inner * outter : inner);
    minValue = elements * (small ? 8 : 16) + (isInitIndex ? 0 : elements * 4) + (small ? 64 + (isLargest ? 0 : elements * 4) : 0);
    maxValue = minValue;
    return true;
}
template <typename Tiling>
bool TopKTilingFunc(const platform_ascendc::PlatformAscendC &platform, int32_t inner, int32_t outter, int32_t k,
                    uint32_t typeSize, bool isInitIndex, TopKMode mode, bool isLargest, Tiling &tiling) {
    uint32_t most = 0, least = 0;
    if (typeSize == 0) return false;
    GetTopKMaxMinTmpSize(platform, inner, outter, false, isInitIndex, mode, isLargest, typeSize, most, least);
    ASIM_PUT(tiling, tmpLocalSize, static_cast<int32_t>(least / typeSize));
    ASIM_PUT(tiling, allDataSize, inner * outter);
    ASIM_PUT(tiling, innerDataSize, static_cast<int32_t>(inner * 8 / static_cast<int32_t>(typeSize)));
    ASIM_PUT(tiling, sortRepeat, static_cast<uint32_t>(inner / 32));
    ASIM_PUT(tiling, mrgSortRepeat, inner / 4);
    ASIM_PUT(tiling, kAlignFourBytes, (k + 7) / 8 * 8);
    ASIM_PUT(tiling, kAlignTwoBytes, (k + 15) / 16 * 16);
    return true;
}

#undef ASIM_PUT

}  // namespace AscendC
