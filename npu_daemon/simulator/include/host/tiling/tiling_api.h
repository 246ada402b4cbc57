// Planning functions of the API library.
//
// The sizes are what the simulator's own math library works with, and at least what the published one divides into rounds;
// calls it does not have report themselves as unsupported.
#pragma once

#include <string>

#include "asim/host/fault.h"
#include "graph/tensor.h"
#include "tiling/matmul_tiling.h"

namespace asim::host {

[[noreturn]] inline void no_scratch_size(const char *function) {
    throw UnsupportedFault(std::string(function) +
                           ": the scratch memory of this library call is not known to the simulator");
}

}  // namespace asim::host

namespace AscendC {

// A function that works in `pieces` tensors of scratch: with all elements at once, or one repeat at a time. Those
// marked as converting work in float and take one more piece to convert half elements.
struct ScratchNeed {
    uint32_t pieces;
    bool converts;
};

inline void math_scratch(ScratchNeed need, const ge::Shape &shape, uint32_t type_size, uint32_t &max, uint32_t &min) {
    constexpr uint32_t kRepeatBytes = 256;
    const uint32_t pieces = need.pieces + (need.converts && type_size == 2 ? 1 : 0);
    const uint32_t element_bytes = need.converts ? 4 : type_size;
    const auto elements = static_cast<uint32_t>(shape.GetShapeSize());
    min = pieces * kRepeatBytes;
    max = pieces * ((elements * element_bytes + kRepeatBytes - 1) / kRepeatBytes * kRepeatBytes);
}

#define ASIM_MATH_SCRATCH(Name, Pieces, Converts)                                                                      \
    inline void Get##Name##MaxMinTmpSize(const ge::Shape &shape, uint32_t typeSize, bool, uint32_t &maxValue,          \
                                         uint32_t &minValue) {                                                         \
        math_scratch({Pieces, Converts}, shape, typeSize, maxValue, minValue);                                         \
    }
ASIM_MATH_SCRATCH(Sigmoid, 1, false)
ASIM_MATH_SCRATCH(Tanh, 1, true)
ASIM_MATH_SCRATCH(Gelu, 3, true)
ASIM_MATH_SCRATCH(Floor, 0, true)
ASIM_MATH_SCRATCH(Ceil, 0, true)
ASIM_MATH_SCRATCH(Round, 0, true)
ASIM_MATH_SCRATCH(Trunc, 0, true)
ASIM_MATH_SCRATCH(Frac, 1, true)
ASIM_MATH_SCRATCH(Sign, 3, false)
ASIM_MATH_SCRATCH(Exp, 3, true)
ASIM_MATH_SCRATCH(Sin, 3, true)
ASIM_MATH_SCRATCH(Cos, 3, true)
ASIM_MATH_SCRATCH(Tan, 4, true)
ASIM_MATH_SCRATCH(Asin, 3, true)
ASIM_MATH_SCRATCH(Acos, 3, true)
ASIM_MATH_SCRATCH(Atan, 5, true)
ASIM_MATH_SCRATCH(Sinh, 1, true)
ASIM_MATH_SCRATCH(Cosh, 2, true)
ASIM_MATH_SCRATCH(Asinh, 3, true)
ASIM_MATH_SCRATCH(Acosh, 1, true)
ASIM_MATH_SCRATCH(Atanh, 1, true)
ASIM_MATH_SCRATCH(Erf, 3, true)
ASIM_MATH_SCRATCH(Erfc, 7, true)
#undef ASIM_MATH_SCRATCH

// Mean keeps one sum for each repeat of a row.
inline void GetMeanMaxMinTmpSize(uint32_t n, uint32_t srcTypeSize, uint32_t, bool, uint32_t &maxValue, uint32_t &minValue) {
    constexpr uint32_t kRepeatBytes = 256, kBlockBytes = 32;
    const uint32_t sums = (n * srcTypeSize + kRepeatBytes - 1) / kRepeatBytes;
    minValue = maxValue = (sums * srcTypeSize + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}
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
// The gradient also keeps products of a row: as much as half tensors in float.
inline uint32_t GetSoftMaxGradMinTmpSize(const ge::Shape &shape, uint32_t, bool isReuseSource, bool) {
    return GetSoftMaxMinTmpSize(shape, 2, isReuseSource);
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
// The extents, which are all that the simulated SoftMax reads; how it splits them follows from its scratch.
inline void SoftMaxTilingFunc(const ge::Shape &shape, uint32_t, uint32_t, optiling::SoftMaxTiling &tiling) {
    const size_t dimensions = shape.GetDimNum();
    const auto columns = static_cast<uint32_t>(dimensions == 0 ? 0 : shape.GetDim(dimensions - 1));
    const auto elements = static_cast<uint32_t>(shape.GetShapeSize());
    tiling.set_srcM(columns == 0 ? 0 : elements / columns);
    tiling.set_srcK(columns);
    tiling.set_srcSize(elements);
}
inline void SoftMaxGradTilingFunc(const ge::Shape &shape, uint32_t typeSize, uint32_t scratch, optiling::SoftMaxTiling &tiling,
                                  bool = false) {
    SoftMaxTilingFunc(shape, typeSize, scratch, tiling);
}
inline void SoftMaxFlashV2TilingFunc(const ge::Shape &shape, uint32_t typeSize, uint32_t, uint32_t scratch,
                                     optiling::SoftMaxTiling &tiling, bool, bool = false) {
    SoftMaxTilingFunc(shape, typeSize, scratch, tiling);
}

}  // namespace AscendC
