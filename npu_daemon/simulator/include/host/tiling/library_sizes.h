// Scratch memory of library calls: what the simulator's own calls work with, and at least what the published library divides
// into rounds.
#pragma once

#include <algorithm>
#include <cstdint>

#include "graph/tensor.h"
#include "graph/types.h"
#include "tiling/platform/platform_ascendc.h"

namespace AscendC {

using TensorShape = ge::Shape;
using TensorDataType = ge::DataType;

// A function that works in `pieces` tensors of scratch: with all elements at once, or one repeat at a time. Those
// marked as converting work in float and take one more piece to convert half elements.
struct ScratchNeed {
    uint32_t pieces;
    bool converts;

    uint32_t element_bytes(uint32_t type_bytes) const { return converts ? 4 : type_bytes; }
    uint32_t pieces_of(uint32_t type_bytes) const { return pieces + (converts && type_bytes == 2 ? 1 : 0); }
};

inline void math_scratch(ScratchNeed need, const ge::Shape &shape, uint32_t type_size, uint32_t &max, uint32_t &min) {
    constexpr uint32_t kRepeatBytes = 256;
    const uint32_t pieces = need.pieces_of(type_size), element_bytes = need.element_bytes(type_size);
    const auto elements = static_cast<uint32_t>(shape.GetShapeSize());
    min = pieces * kRepeatBytes;
    max = pieces * ((elements * element_bytes + kRepeatBytes - 1) / kRepeatBytes * kRepeatBytes);
}

// How often the operands' bytes are needed, and bytes beside that.
inline void scratch_factor(ScratchNeed need, uint32_t type_size, uint32_t &factor, uint32_t &extra) {
    factor = need.pieces_of(type_size) * need.element_bytes(type_size) / (type_size == 0 ? 1 : type_size);
    extra = 0;
}

#define ASIM_MATH_SCRATCH(Name, Pieces, Converts)                                                                   \
    inline void Get##Name##MaxMinTmpSize(const ge::Shape &shape, uint32_t typeSize, bool, uint32_t &maxValue,       \
                                         uint32_t &minValue) {                                                      \
        math_scratch({Pieces, Converts}, shape, typeSize, maxValue, minValue);                                      \
    }                                                                                                               \
    inline void Get##Name##TmpBufferFactorSize(uint32_t typeSize, uint32_t &maxLiveNodeCount, uint32_t &extraBuf) { \
        scratch_factor({Pieces, Converts}, typeSize, maxLiveNodeCount, extraBuf);                                   \
    }
ASIM_MATH_SCRATCH(Sigmoid, 1, false)
ASIM_MATH_SCRATCH(Tanh, 1, true)
ASIM_MATH_SCRATCH(Floor, 0, true)
ASIM_MATH_SCRATCH(Ceil, (typeSize == 2 ? 0 : 1), true)
ASIM_MATH_SCRATCH(Round, 0, true)
ASIM_MATH_SCRATCH(Trunc, (typeSize == 2 ? 0 : 1), true)
ASIM_MATH_SCRATCH(Rint, 0, true)
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
ASIM_MATH_SCRATCH(Log, 0, false)
ASIM_MATH_SCRATCH(Log2, 0, true)
ASIM_MATH_SCRATCH(Log10, 0, true)
ASIM_MATH_SCRATCH(Clamp, 1, false)
ASIM_MATH_SCRATCH(Axpy, 1, true)
ASIM_MATH_SCRATCH(Xor, 1, false)
ASIM_MATH_SCRATCH(Fmod, 3, true)
ASIM_MATH_SCRATCH(Lgamma, 12, true)
ASIM_MATH_SCRATCH(Digamma, 7, true)
ASIM_MATH_SCRATCH(GeGLU, 1, true)
ASIM_MATH_SCRATCH(ReGlu, 2, true)
#undef ASIM_MATH_SCRATCH

// Of all elements the differing bits, what Xor works in, and both in float: whole numbers of 32 elements.
inline void GetReduceXorSumMaxMinTmpSize(const ge::Shape &shape, uint32_t typeSize, bool, uint32_t &maxValue,
                                         uint32_t &minValue) {
    const auto elements = (static_cast<uint32_t>(shape.GetShapeSize()) + 31) / 32 * 32;
    minValue = maxValue = elements * (4 + 2 * typeSize);
}
inline void GetReduceXorSumTmpBufferFactorSize(uint32_t typeSize, uint32_t &maxLiveNodeCount, uint32_t &extraBuf) {
    scratch_factor({4, false}, typeSize, maxLiveNodeCount, extraBuf);
    extraBuf = 31 * 4 * typeSize;
}

inline void GetGeluMaxMinTmpSize(const ge::Shape &shape, uint32_t typeSize, uint32_t &maxValue, uint32_t &minValue) {
    math_scratch({3, true}, shape, typeSize, maxValue, minValue);
}
inline void GetGeluMaxMinTmpSize(const ge::Shape &shape, uint32_t typeSize, bool, uint32_t &maxValue, uint32_t &minValue) {
    math_scratch({3, true}, shape, typeSize, maxValue, minValue);
}
inline uint32_t GetGeluMaxTmpSize(const ge::Shape &shape, uint32_t typeSize) {
    uint32_t most = 0, least = 0;
    GetGeluMaxMinTmpSize(shape, typeSize, most, least);
    return most;
}
inline uint32_t GetGeluMinTmpSize(const ge::Shape &shape, uint32_t typeSize) {
    uint32_t most = 0, least = 0;
    GetGeluMaxMinTmpSize(shape, typeSize, most, least);
    return least;
}
inline void GetSwishTmpSize(const ge::Shape &shape, uint32_t typeSize, bool, uint32_t &maxValue, uint32_t &minValue) {
    math_scratch({1, true}, shape, typeSize, maxValue, minValue);
}
inline void GetSiluTmpSize(const ge::Shape &shape, uint32_t typeSize, bool, uint32_t &maxValue, uint32_t &minValue) {
    math_scratch({1, true}, shape, typeSize, maxValue, minValue);
}
inline void GetSwiGLUMaxMinTmpSize(const ge::Shape &shape, uint32_t typeSize, uint32_t &maxValue, uint32_t &minValue, bool) {
    math_scratch({2, true}, shape, typeSize, maxValue, minValue);
}
inline void GetSwiGLUTmpBufferFactorSize(uint32_t typeSize, uint32_t &maxLiveNodeCount, uint32_t &extraBuffer) {
    scratch_factor({2, true}, typeSize, maxLiveNodeCount, extraBuffer);
}

// Five tensors of floats, and the scalars that the library selects; of integers five of them.
inline void GetPowerMaxMinTmpSize(const ge::Shape &shape0, const ge::Shape &shape1, bool, uint32_t, bool, uint32_t &maxValue,
                                  uint32_t &minValue) {
    const ge::Shape &longer = shape0.GetShapeSize() < shape1.GetShapeSize() ? shape1 : shape0;
    math_scratch({7, true}, longer, sizeof(float), maxValue, minValue);
    constexpr uint32_t kScalars = 256;
    maxValue += kScalars;
    minValue += kScalars;
}
inline void GetPowerTmpBufferFactorSize(bool, bool, bool, uint32_t typeSize, uint32_t &maxLiveNodeCount, uint32_t &extraBuffer) {
    scratch_factor({7, true}, typeSize, maxLiveNodeCount, extraBuffer);
    extraBuffer = 256;
}

inline void GetArithProgressionMaxMinTmpSize(uint32_t &maxValue, uint32_t &minValue) { maxValue = minValue = 0; }
inline void GetArangeMaxMinTmpSize(uint32_t &maxValue, uint32_t &minValue) { maxValue = minValue = 0; }

// Down columns half rows in float; along rows sixteen rows transposed twice, half with floats in the place of the second.
inline void GetCumSumMaxMinTmpSize(const ge::Shape &shape, uint32_t typeSize, bool isLastAxis, bool, uint32_t &maxValue,
                                   uint32_t &minValue) {
    constexpr uint32_t kRows = 16;
    const auto rows = static_cast<uint32_t>(shape.GetDim(0)), columns = static_cast<uint32_t>(shape.GetDim(1));
    if (!isLastAxis) {
        maxValue = minValue = typeSize == 2 ? rows * columns * 4 : 0;
        return;
    }
    minValue = kRows * columns * typeSize * (typeSize == 2 ? 3 : 2);
    maxValue = (rows + kRows - 1) / kRows * minValue;
}

// One number for each repeat of a row.
inline void GetSumMaxMinTmpSize(uint32_t n, uint32_t typeSize, bool, uint32_t &maxValue, uint32_t &minValue) {
    constexpr uint32_t kRepeatBytes = 256, kBlockBytes = 32;
    const uint32_t sums = (n * typeSize + kRepeatBytes - 1) / kRepeatBytes;
    minValue = maxValue = (sums * typeSize + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}
inline void GetMeanMaxMinTmpSize(uint32_t n, uint32_t typeSize, uint32_t, bool isReuseSource, uint32_t &maxValue,
                                 uint32_t &minValue) {
    GetSumMaxMinTmpSize(n, typeSize, isReuseSource, maxValue, minValue);
}

enum class ReducePattern : uint32_t { AR = 0, RA = 1 };

inline uint32_t bytes_of_type(ge::DataType type) {
    if (type == ge::DT_UINT8 || type == ge::DT_INT8 || type == ge::DT_BOOL) return 1;
    return type == ge::DT_FLOAT16 || type == ge::DT_BF16 ? 2 : 4;
}

// A repeat for each row, at least one; or half of the rows. Products take all rows and a repeat, and bytes become half.
inline void reduction_scratch(const ge::Shape &shape, ge::DataType type, ReducePattern pattern, bool products, uint32_t &most,
                              uint32_t &least) {
    constexpr uint32_t kRepeatBytes = 256, kBlockBytes = 32;
    const uint32_t type_bytes = bytes_of_type(type);
    const auto rows = static_cast<uint32_t>(shape.GetDim(0)), columns = static_cast<uint32_t>(shape.GetDim(1));
    const uint32_t row_bytes = (columns * type_bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    most = pattern == ReducePattern::AR ? rows * kRepeatBytes : rows * row_bytes;
    least = pattern == ReducePattern::AR ? kRepeatBytes : rows * row_bytes;
    if (products) most = least = rows * row_bytes + kRepeatBytes + rows * kBlockBytes;
    // Values and results in half, and what a reduction of half elements works in: half of the rows, or a repeat.
    const uint32_t results = row_bytes > rows ? row_bytes : rows + kBlockBytes;
    if (type_bytes == 1) most = least = 4 * rows * row_bytes + kRepeatBytes + 2 * results;
}
#define ASIM_REDUCTION_SCRATCH(Name, products)                                                                         \
    inline void Get##Name##MaxMinTmpSize(const ge::Shape &shape, ge::DataType type, ReducePattern pattern, bool, bool, \
                                         uint32_t &maxValue, uint32_t &minValue) {                                     \
        reduction_scratch(shape, type, pattern, products, maxValue, minValue);                                         \
    }
ASIM_REDUCTION_SCRATCH(ReduceSum, false)
ASIM_REDUCTION_SCRATCH(ReduceMean, false)
ASIM_REDUCTION_SCRATCH(ReduceMax, false)
ASIM_REDUCTION_SCRATCH(ReduceMin, false)
ASIM_REDUCTION_SCRATCH(ReduceAny, false)
ASIM_REDUCTION_SCRATCH(ReduceAll, false)
ASIM_REDUCTION_SCRATCH(ReduceProd, true)
#undef ASIM_REDUCTION_SCRATCH

// Eight or sixteen rows' elements spread to data blocks, and the rows themselves where they are no whole data blocks.
inline void GetBroadCastMaxMinTmpSize(const platform_ascendc::PlatformAscendC &platform, const ge::Shape &, const ge::Shape &dstShape,
                                      uint32_t typeSize, bool, uint32_t &maxValue, uint32_t &minValue) {
    constexpr uint32_t kBlockBytes = 32;
    const size_t dimensions = dstShape.GetDimNum();
    const auto columns = static_cast<uint32_t>(dimensions == 0 ? 1 : dstShape.GetDim(dimensions - 1));
    const uint32_t rows = std::max<uint32_t>(1, static_cast<uint32_t>(dstShape.GetShapeSize()) / std::max<uint32_t>(1, columns));
    const uint32_t row_bytes = (columns * typeSize + kBlockBytes - 1) / kBlockBytes * kBlockBytes, group = typeSize == 2 ? 16 : 8;
    minValue = group * (kBlockBytes + row_bytes);
    maxValue = (rows + group - 1) / group * minValue;
    if (typeSize != 1) return;      // the call works on halfs of all elements
    GetBroadCastMaxMinTmpSize(platform, {}, dstShape, 2, false, maxValue, minValue);
    const uint32_t halves = ((rows + columns) * 2 + 2 * kBlockBytes) + (rows * columns * 2 + kBlockBytes);
    minValue += halves;
    maxValue += halves;
}

// One tensor of halfs, and as the published library has it no less than two repeats.
inline void GetAscendQuantMaxMinTmpSize(const ge::Shape &shape, uint32_t, uint32_t &maxValue, uint32_t &minValue) {
    constexpr uint32_t kLeast = 2 * 256, kUnit = 64;
    minValue = kLeast;
    maxValue = std::max(minValue, (static_cast<uint32_t>(shape.GetShapeSize()) * 2 + kUnit - 1) / kUnit * kUnit);
}
inline void GetAscendQuantTmpBufferFactorSize(uint32_t &maxLiveNodeCount, uint32_t &extraBuf) {
    maxLiveNodeCount = 2;
    extraBuf = 0;
}

// Scales of a row in float and two tensors for the values of a row.
inline void GetAscendDequantMaxMinTmpSize(const ge::Shape &shape, uint32_t, uint32_t &maxValue, uint32_t &minValue) {
    const size_t dimensions = shape.GetDimNum();
    const auto columns = static_cast<uint32_t>(dimensions == 0 ? 0 : shape.GetDim(dimensions - 1));
    minValue = maxValue = 3 * ((columns * 4 + 255) / 256 * 256);
}

// Of values that share their factors, or of a row of them: halfs where half comes out, else floats, halfs to convert, and factors in float.
// At least a data block of the source, which of four bits are 64 values.
inline void GetAscendAntiQuantMaxMinTmpSize(const ge::Shape &srcShape, const ge::Shape &scaleShape, bool isTranspose, ge::DataType inputDataType,
                                            ge::DataType outputDataType, uint32_t &maxValue, uint32_t &minValue) {
    constexpr uint32_t kUnit = 64;
    const auto last = [](const ge::Shape &shape) {
        const size_t dimensions = shape.GetDimNum();
        return static_cast<uint32_t>(dimensions == 0 ? 1 : shape.GetDim(dimensions - 1));
    };
    const uint32_t value_bytes = outputDataType == ge::DT_FLOAT16 ? 2 : 3 * 4, width = std::max(1u, last(scaleShape));
    uint32_t values = isTranspose ? last(srcShape) / width : width;
    if (scaleShape.GetShapeSize() <= 1) values = static_cast<uint32_t>(srcShape.GetShapeSize());
    minValue = value_bytes * (inputDataType == ge::DT_INT4 ? kUnit : kUnit / 2);
    maxValue = std::max(minValue, value_bytes * ((values + kUnit - 1) / kUnit * kUnit));
}
inline uint32_t GetAscendAntiQuantMaxTmpSize(const ge::Shape &srcShape, const ge::Shape &scaleShape, bool isTranspose, ge::DataType inputDataType,
                                             ge::DataType outputDataType) {
    uint32_t most = 0, least = 0;
    GetAscendAntiQuantMaxMinTmpSize(srcShape, scaleShape, isTranspose, inputDataType, outputDataType, most, least);
    return most;
}
inline uint32_t GetAscendAntiQuantMinTmpSize(const ge::Shape &srcShape, const ge::Shape &scaleShape, bool isTranspose, ge::DataType inputDataType,
                                             ge::DataType outputDataType) {
    uint32_t most = 0, least = 0;
    GetAscendAntiQuantMaxMinTmpSize(srcShape, scaleShape, isTranspose, inputDataType, outputDataType, most, least);
    return least;
}
inline void GetAscendAntiQuantTmpBufferFactorSize(const ge::Shape &, const ge::Shape &, bool, ge::DataType, ge::DataType outputDataType,
                                                  uint32_t &maxLiveNodeCount, uint32_t &extraBuf) {
    maxLiveNodeCount = outputDataType == ge::DT_FLOAT16 ? 2 : 3 * 4;
    extraBuf = 0;
}

enum class SortType { RADIX_SORT, MERGE_SORT };
struct SortConfig {
    SortType type = SortType::RADIX_SORT;
    bool isDescend = false;
};

inline void GetSortMaxMinTmpSize(const ge::Shape &shape, ge::DataType, ge::DataType, bool, const SortConfig &, uint32_t &maxValue,
                                 uint32_t &minValue) {
    minValue = maxValue = static_cast<uint32_t>(shape.GetShapeSize()) * 8;
}

// Concat of this chip takes the values as they are; Sort takes as much again as its records.
inline uint32_t GetConcatTmpSize(const platform_ascendc::PlatformAscendC &, uint32_t, uint32_t) { return 0; }
inline uint32_t GetSortTmpSize(const platform_ascendc::PlatformAscendC &, uint32_t elemCount, uint32_t) { return elemCount * 8; }

// Two tensors of half values of a row of the mask.
inline uint32_t GetSelectMinTmpSize(const ge::Shape &, const ge::Shape &, uint32_t, const ge::Shape &, uint32_t, bool) {
    return 2 * 256;
}
inline uint32_t GetSelectMaxTmpSize(const ge::Shape &, const ge::Shape &, uint32_t, const ge::Shape &maskShape, uint32_t, bool) {
    const auto elements = static_cast<uint32_t>(maskShape.GetShapeSize());
    return std::max(2 * 256u, 2 * ((elements * 2 + 255) / 256 * 256));
}
inline uint32_t GetSelectWithBytesMaskMinTmpSize(const ge::Shape &src0, const ge::Shape &src1, uint32_t bytes,
                                                 const ge::Shape &mask, uint32_t mask_bytes, bool reuses) {
    return GetSelectMinTmpSize(src0, src1, bytes, mask, mask_bytes, reuses);
}
inline uint32_t GetSelectWithBytesMaskMaxTmpSize(const ge::Shape &src0, const ge::Shape &src1, uint32_t bytes,
                                                 const ge::Shape &mask, uint32_t mask_bytes, bool reuses) {
    return GetSelectMaxTmpSize(src0, src1, bytes, mask, mask_bytes, reuses);
}
inline void GetSelectMaxMinTmpSize(const ge::Shape &src0, const ge::Shape &src1, uint32_t bytes, const ge::Shape &mask,
                                   uint32_t mask_bytes, bool reuses, uint32_t &maxValue, uint32_t &minValue) {
    maxValue = GetSelectMaxTmpSize(src0, src1, bytes, mask, mask_bytes, reuses);
    minValue = GetSelectMinTmpSize(src0, src1, bytes, mask, mask_bytes, reuses);
}
inline void GetSelectWithBytesMaskMaxMinTmpSize(const ge::Shape &src0, const ge::Shape &src1, uint32_t bytes,
                                                const ge::Shape &mask, uint32_t mask_bytes, bool reuses, uint32_t &maxValue,
                                                uint32_t &minValue) {
    GetSelectMaxMinTmpSize(src0, src1, bytes, mask, mask_bytes, reuses, maxValue, minValue);
}

}  // namespace AscendC
