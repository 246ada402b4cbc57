// Copies between global memory and the unified buffer.
#pragma once
#include <cstdint>

#include "asim/machine/export.h"
#include "asim/machine/units.h"

namespace asim {

// A strided copy: `burst_count` bursts of `burst_bytes`, with the distance between burst starts on each side.
struct CopyShape {
    uint32_t burst_count = 1;
    uint32_t burst_bytes = 0;
    uint64_t gm_stride_bytes = 0;
    uint64_t ub_stride_bytes = 0;
    Flag bypass_l2 = false;     // the tensor's L2 cache hint: data used once need not displace others
};

// Bytes written to UB around each burst: `left` and `right` elements of `value`, then up to the next 32 B. Without `fill` the
// register has the value, if it was set.
struct PadShape {
    Flag fill = false;
    uint32_t left_bytes = 0;
    uint32_t right_bytes = 0;
    uint32_t element_bytes = 1;
    uint64_t value = 0;         // bits of an element
};

// Which call faults name.
enum class CopyCall : uint8_t { DataCopy, DataCopyPad, LoadData };

ASIM_API void copy_gm_to_ub(CopyCall call, uint8_t *ub, const uint8_t *gm, CopyShape shape, PadShape pad);
ASIM_API void copy_ub_to_gm(CopyCall call, uint8_t *gm, const uint8_t *ub, CopyShape shape, uint32_t dtype_code);
ASIM_API void copy_ub_to_ub(uint8_t *dst, const uint8_t *src, uint32_t burst_count, uint32_t burst_bytes,
                   uint32_t dst_stride_bytes, uint32_t src_stride_bytes);

}  // namespace asim
