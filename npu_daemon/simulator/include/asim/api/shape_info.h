// Shapes that kernels note for library calls on a tensor.
#pragma once
#include <cstdint>

#include "asim/machine/export.h"

namespace AscendC {

enum class DataFormat : uint8_t { ND = 0, NZ, NCHW, NC1HWC0, NHWC, NCDHW, NDC1HWC0, FRACTAL_Z_3D };

// Extents with padding, and the original ones.
struct ShapeInfo {
    ShapeInfo() = default;
    ShapeInfo(uint8_t dimensions, const uint32_t *extents, uint8_t original_dimensions, const uint32_t *original, DataFormat format)
        : shapeDim(dimensions), originalShapeDim(original_dimensions), dataFormat(format) {
        for (uint8_t i = 0; i < dimensions && i < kMostDimensions; ++i) shape[i] = extents[i];
        for (uint8_t i = 0; i < original_dimensions && i < kMostDimensions; ++i) originalShape[i] = original[i];
    }
    ShapeInfo(uint8_t dimensions, const uint32_t *extents, DataFormat format = DataFormat::ND)
        : ShapeInfo(dimensions, extents, dimensions, extents, format) {}

    static constexpr uint8_t kMostDimensions = 8;
    uint8_t shapeDim = 0;
    uint8_t originalShapeDim = 0;
    uint32_t shape[kMostDimensions] = {};
    uint32_t originalShape[kMostDimensions] = {};
    DataFormat dataFormat = DataFormat::ND;
};

}  // namespace AscendC

namespace asim {

// The latest shape noted for a tensor that starts at `base`; one without dimensions where there is none.
ASIM_API void note_shape(const void *base, AscendC::ShapeInfo shape);
// Likewise SetUserTag; 0 where nothing was noted.
ASIM_API void note_tag(const void *base, int32_t tag);
ASIM_API int32_t noted_tag(const void *base);
ASIM_API void noted_shape(const void *base, AscendC::ShapeInfo *shape);

}  // namespace asim
