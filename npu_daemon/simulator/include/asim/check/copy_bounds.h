// Numbers of copies beyond which their extents would wrap around. No memory is as large.
#pragma once
#include <cstdint>
#include <initializer_list>

#include "asim/machine/fault.h"
#include "asim/semantics/copy.h"

namespace asim {

constexpr uint64_t kMostBursts = 1ull << 24;
constexpr uint64_t kMostStrideBytes = 1ull << 38;

inline void check_bursts(const char *call, std::initializer_list<uint64_t> counts, std::initializer_list<uint64_t> strides) {
    for (const uint64_t count : counts) {
        if (count > kMostBursts) fault(FaultKind::RuntimeFault, call, "a count of %llu is more than any memory holds", static_cast<unsigned long long>(count));
    }
    for (const uint64_t stride : strides) {
        if (stride > kMostStrideBytes) fault(FaultKind::RuntimeFault, call, "a distance of %llu bytes is larger than any memory", static_cast<unsigned long long>(stride));
    }
}

// Warns if a contiguous copy, whose strides are the bytes asked for, leaves some out; then its strides are what it copies.
inline void take_remainder(const char *call, CopyShape &shape, const void *place) {
    const uint64_t asked_bytes = shape.gm_stride_bytes;
    if (shape.burst_count != 1 || asked_bytes / kUbBlockBytes * kUbBlockBytes != shape.burst_bytes || asked_bytes == shape.burst_bytes) return;
    remainder_left_out(call, asked_bytes, place);
    shape.gm_stride_bytes = shape.ub_stride_bytes = shape.burst_bytes;
}

// Bursts of one copy: twelve bits count them (asc-devkit docs/zh/api/SIMD-API, the ranges of blockCount of DataCopy and DataCopyPad and
// of ndNum of copies that turn matrices into fractals).
inline void check_copied_bursts(const char *call, uint64_t count) {
    constexpr uint64_t kMostCopied = 4095;
    if (count > kMostCopied) {
        fault(FaultKind::RuntimeFault, call, "a count of %llu is more than a copy has: expected at most %llu bursts",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(kMostCopied));
    }
}

inline void check_element_bytes(const char *call, uint32_t bytes) {
    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) fault(FaultKind::RuntimeFault, call, "elements of %u bytes do not exist", bytes);
}

}  // namespace asim
