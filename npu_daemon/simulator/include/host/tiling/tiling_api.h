// Planning functions of the API library.
//
// The sizes are what the simulator's own math library works with, and at least what the published one divides into rounds;
// calls it does not have report themselves as unsupported.
#pragma once

#include <string>

#include "asim/host/fault.h"
#include "graph/tensor.h"
#include "securec.h"
#include "tiling/library_plans.h"
#include "tiling/library_sizes.h"
#include "tiling/matmul_tiling.h"
#if __has_include("asim/unit_sizes.h")      // of kernels, in programs with launches
#include "asim/unit_sizes.h"
#else
namespace AscendC {
constexpr uint32_t ONE_BLK_SIZE = 32;
constexpr int32_t ONE_REPEAT_BYTE_SIZE = 256;
}  // namespace AscendC
#endif

namespace asim::host {

[[noreturn]] inline void no_scratch_size(const char *function) {
    throw UnsupportedFault(std::string(function) +
                           ": the scratch memory of this library call is not known to the simulator");
}

// The last extent, at least 1: rows are what is left of the number of elements.
inline uint32_t columns_of(const ge::Shape &shape) {
    const size_t dimensions = shape.GetDimNum();
    return static_cast<uint32_t>(dimensions == 0 ? 1 : std::max<int64_t>(1, shape.GetDim(dimensions - 1)));
}

}  // namespace asim::host

namespace AscendC {

// Units of the cube, in elements of 16 bits.
constexpr int32_t BLOCK_CUBE = 16;
constexpr int32_t CUBE_MAX_SIZE = 256;

// SoftMax works on eight rows at a time: their maxima or sums, one data block for each row, partial results of a row,
// and for half tensors the rows in float.
inline uint32_t GetSoftMaxMinTmpSize(const ge::Shape &shape, uint32_t typeSize, bool) {
    constexpr uint32_t kRows = 8, kBlockBytes = 32, kRepeatBytes = 256;
    const size_t dimensions = shape.GetDimNum();
    const auto columns = static_cast<uint32_t>(dimensions == 0 ? 0 : shape.GetDim(dimensions - 1));
    const auto padded = [](uint32_t bytes, uint32_t unit) { return (bytes + unit - 1) / unit * unit; };
    const uint32_t row_bytes = padded(columns * 4, kBlockBytes);
    return kBlockBytes + kRepeatBytes + padded(columns / 16 + 4, kRepeatBytes) + (typeSize == 2 ? kRows * row_bytes : 0);
}
inline uint32_t GetSoftMaxMaxTmpSize(const ge::Shape &shape, uint32_t typeSize, bool isReuseSource) {
    return GetSoftMaxMinTmpSize(shape, typeSize, isReuseSource);
}
// The gradient also keeps products of a row: as much as half tensors in float, and of half both operands in float.
inline uint32_t GetSoftMaxGradMinTmpSize(const ge::Shape &shape, uint32_t typeSize, bool isReuseSource, bool) {
    const uint32_t numbers = GetSoftMaxMinTmpSize(shape, 4, isReuseSource), with_rows = GetSoftMaxMinTmpSize(shape, 2, isReuseSource);
    return typeSize == 2 ? numbers + 3 * (with_rows - numbers) : with_rows;
}
inline uint32_t GetSoftMaxGradMaxTmpSize(const ge::Shape &shape, uint32_t typeSize, bool isReuseSource, bool isFront) {
    return GetSoftMaxGradMinTmpSize(shape, typeSize, isReuseSource, isFront);
}
inline uint32_t GetSoftMaxFlashV2MinTmpSize(const ge::Shape &shape, uint32_t, uint32_t, bool isUpdate, bool = false, bool = false) {
    return GetSoftMaxMinTmpSize(shape, 4, isUpdate);
}
inline uint32_t GetSoftMaxFlashV2MaxTmpSize(const ge::Shape &shape, uint32_t, uint32_t, bool isUpdate, bool = false, bool = false) {
    return GetSoftMaxMinTmpSize(shape, 4, isUpdate);
}
// SoftmaxFlash keeps the sums of before, and of halves works on rows in float with up to six numbers of each. What the host is told is the
// type of the numbers, so floats are those of either.
inline uint32_t GetSoftMaxFlashMinTmpSize(const ge::Shape &shape, uint32_t typeSize, bool isUpdate, bool isReuseSource) {
    constexpr uint32_t kBlockBytes = 32, kNumbers = 6;
    const uint32_t columns = asim::host::columns_of(shape);
    const uint32_t rows = static_cast<uint32_t>(shape.GetShapeSize()) / columns, row_bytes = columns * 4 + kNumbers * kBlockBytes;
    return GetSoftMaxMinTmpSize(shape, 4, isReuseSource) + std::max(row_bytes, typeSize == 4 && isUpdate ? rows * kBlockBytes : 0);
}
inline uint32_t GetSoftMaxFlashMaxTmpSize(const ge::Shape &shape, uint32_t, bool, bool isReuseSource) {
    constexpr uint32_t kBlockBytes = 32, kNumbers = 6;
    const uint32_t columns = asim::host::columns_of(shape);
    const uint32_t rows = static_cast<uint32_t>(shape.GetShapeSize()) / columns;
    return GetSoftMaxMinTmpSize(shape, 4, isReuseSource) + std::max(1u, rows) * (columns * 4 + kNumbers * kBlockBytes);
}
// SoftmaxFlashV3 works on eight rows at a time, or more: each in float, a repeat of partial results and 33 numbers.
inline void GetSoftMaxFlashV3MaxMinTmpSize(const ge::Shape &shape, uint32_t, uint32_t, uint32_t &maxValue, uint32_t &minValue, bool, bool = false) {
    constexpr uint32_t kRows = 8, kOthers = 64 + 33;
    const uint32_t columns = asim::host::columns_of(shape);
    minValue = kRows * (columns + kOthers) * 4;
    maxValue = std::max(minValue, static_cast<uint32_t>(shape.GetShapeSize()) / columns * (columns + kOthers) * 4);
}
// The extents, which are all that the simulated SoftMax reads; how it splits them follows from its scratch.
template <typename Tiling>
void SoftMaxTilingFunc(const ge::Shape &shape, uint32_t typeSize, uint32_t scratch, Tiling &tiling) {
    LogSoftMaxTilingFunc(shape, typeSize, scratch, tiling);
}
template <typename Tiling>
void SoftMaxGradTilingFunc(const ge::Shape &shape, uint32_t typeSize, uint32_t scratch, Tiling &tiling, bool = false) {
    SoftMaxTilingFunc(shape, typeSize, scratch, tiling);
}
template <typename Tiling>
void SoftMaxFlashV2TilingFunc(const ge::Shape &shape, uint32_t typeSize, uint32_t, uint32_t scratch, Tiling &tiling, bool, bool = false,
                              bool = false) {
    SoftMaxTilingFunc(shape, typeSize, scratch, tiling);
}
template <typename Tiling>
void SoftMaxFlashTilingFunc(const ge::Shape &shape, uint32_t typeSize, uint32_t scratch, Tiling &tiling, bool = false) {
    SoftMaxTilingFunc(shape, typeSize, scratch, tiling);
}
template <typename Tiling>
void SoftMaxFlashV3TilingFunc(const ge::Shape &shape, uint32_t typeSize, uint32_t, uint32_t scratch, Tiling &tiling, bool, bool = false) {
    SoftMaxTilingFunc(shape, typeSize, scratch, tiling);
}

inline uint32_t GetLogSoftMaxMinTmpSize(const ge::Shape &shape, uint32_t typeSize, bool isReuseSource) {
    return GetSoftMaxMinTmpSize(shape, typeSize, isReuseSource);
}
inline uint32_t GetLogSoftMaxMaxTmpSize(const ge::Shape &shape, uint32_t typeSize, bool isReuseSource) {
    return GetSoftMaxMaxTmpSize(shape, typeSize, isReuseSource);
}

}  // namespace AscendC
