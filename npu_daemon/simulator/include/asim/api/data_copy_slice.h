// DataCopy of slices: a subset of a tensor of several dimensions, with a slice of each of them on both sides.
#pragma once
#include "asim/api/data_copy.h"
#include "asim/machine/refusal.h"

namespace AscendC {

// Positions in elements. Along the first dimension a slice is bursts of `burstLen` data blocks, `stride` elements apart;
// along the others single indices, `stride` of them left out in between. `endIndex` is part of the slice.
struct SliceInfo {
    SliceInfo() = default;
    SliceInfo(uint32_t start, uint32_t end, uint32_t gap, uint32_t burst_blocks, uint32_t extent = 0)
        : startIndex(start), endIndex(end), stride(gap), burstLen(burst_blocks), shapeValue(extent) {}

    uint32_t startIndex = 0;
    uint32_t endIndex = 0;
    uint32_t stride = 0;
    uint32_t burstLen = 0;
    uint32_t shapeValue = 0;
};

constexpr uint32_t kMaxSliceDims = 8;

// How many pieces of `piece` elements a slice has.
inline uint32_t slice_count(const SliceInfo &slice, uint32_t piece) {
    return (slice.endIndex - slice.startIndex + 1 + slice.stride) / (piece + slice.stride);
}

inline void check_slices(const SliceInfo slices[], uint32_t dims) {
    if (dims == 0 || dims > kMaxSliceDims) asim::refuse(asim::Refusal::SliceDimensions);
    for (uint32_t dim = 0; dim < dims; ++dim) {
        if (slices[dim].shapeValue == 0 || slices[dim].endIndex < slices[dim].startIndex) {
            asim::refuse(asim::Refusal::SliceExtents);
        }
    }
}

// Elements from the start of the tensor to row number `row` of the slice, counted with its second dimension fastest.
inline uint64_t slice_offset(const SliceInfo slices[], uint32_t dims, uint32_t row) {
    uint64_t offset = slices[0].startIndex;
    uint64_t extent = 1;
    for (uint32_t dim = 1; dim < dims; ++dim) {
        extent *= slices[dim - 1].shapeValue;
        const uint32_t count = slice_count(slices[dim], 1);
        offset += (slices[dim].startIndex + uint64_t{row % count} * (1 + slices[dim].stride)) * extent;
        row /= count;
    }
    return offset;
}

// Calls `copy(gm elements, ub elements, shape)` for each row of a slice; counts come from the source.
template <typename T, typename Copy>
void copy_slices(const SliceInfo gm[], const SliceInfo ub[], const SliceInfo source[], uint32_t dims, Copy copy) {
    check_slices(gm, dims);
    check_slices(ub, dims);
    const uint32_t burst_bytes = source[0].burstLen * asim::kUbBlockBytes;
    uint32_t rows = 1;
    for (uint32_t dim = 1; dim < dims; ++dim) rows *= slice_count(source[dim], 1);
    const asim::CopyShape shape{slice_count(source[0], burst_bytes / sizeof(T)), burst_bytes,
                                burst_bytes + uint64_t{gm[0].stride} * sizeof(T),
                                burst_bytes + uint64_t{ub[0].stride} * sizeof(T)};
    for (uint32_t row = 0; row < rows; ++row) copy(slice_offset(gm, dims, row), slice_offset(ub, dims, row), shape);
}

template <typename T>
__aicore__ inline void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const SliceInfo dstSliceInfo[],
                                const SliceInfo srcSliceInfo[], const uint32_t dimValue = 1) {
    copy_slices<T>(srcSliceInfo, dstSliceInfo, srcSliceInfo, dimValue,
                   [&](uint64_t gm_elems, uint64_t ub_elems, const asim::CopyShape &shape) {
                       copy_in(asim::CopyCall::DataCopy, dst[static_cast<uint32_t>(ub_elems)], src[gm_elems], shape, {});
                   });
}

template <typename T>
__aicore__ inline void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const SliceInfo dstSliceInfo[],
                                const SliceInfo srcSliceInfo[], const uint32_t dimValue = 1) {
    copy_slices<T>(dstSliceInfo, srcSliceInfo, srcSliceInfo, dimValue,
                   [&](uint64_t gm_elems, uint64_t ub_elems, const asim::CopyShape &shape) {
                       copy_out(asim::CopyCall::DataCopy, dst[gm_elems], src[static_cast<uint32_t>(ub_elems)], shape);
                   });
}

}  // namespace AscendC
