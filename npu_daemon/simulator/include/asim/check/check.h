// Bounds and alignment checks of on-chip operands.
#pragma once
#include <cstdint>

#include "asim/machine/block.h"
#include "asim/machine/fault.h"
#include "asim/machine/units.h"

namespace asim {

// Whether bytes of UB go on past the end of the buffer that they begin in, up to 32 B.
inline bool past_buffer(const Block &self, uint64_t offset, uint64_t bytes) {
    const uint64_t unit = offset / kUbBlockBytes;
    if (unit >= self.buffer_ends.size() || self.buffer_ends[unit] == 0) return false;
    return (offset + bytes + kUbBlockBytes - 1) / kUbBlockBytes > self.buffer_ends[unit];
}
void warn_of_overrun(const char *call, uint64_t offset, uint64_t bytes);

// The call touches bytes that are not in the block's unified buffer.
[[noreturn]] void fault_outside_ub(const char *call, const void *pointer, uint64_t bytes);

// Byte offset in UB of a range that must lie inside the block's unified buffer.
inline uint64_t checked_ub(const char *call, const void *pointer, uint64_t bytes) {
    const Block &self = block();
    const auto *bytes_pointer = static_cast<const uint8_t *>(pointer);
    const int64_t offset = bytes_pointer - self.ub;
    if (__builtin_expect(offset < 0 || bytes > self.ub_bytes || static_cast<uint64_t>(offset) > self.ub_bytes - bytes, 0)) {
        fault_outside_ub(call, pointer, bytes);
    }
    const auto first = static_cast<uint64_t>(offset);
    if (__builtin_expect(past_buffer(self, first, bytes), 0)) warn_of_overrun(call, first, bytes);
    return first;
}

// What messages call a memory.
inline const char *memory_name(Space space) {
    constexpr const char *kNames[] = {"unified buffer", "global memory", "L1", "L0A", "L0B", "L0C", "bias table", "fixpipe buffer"};
    return static_cast<uint32_t>(space) < kSpaceCount ? kNames[static_cast<int>(space)] : "no memory";
}

// Byte offset in a memory of this cube core of a range that must lie inside it and start at a multiple of `unit_bytes`.
uint64_t checked_local(const char *call, const char *operand, Space space, const void *pointer, uint64_t bytes, uint32_t unit_bytes);

inline void check_ub_alignment(const char *call, const char *operand, uint64_t offset, uint32_t unit_bytes) {
    if (__builtin_expect(offset % unit_bytes != 0, 0)) {
        fault(FaultKind::RuntimeFault, call,
              "%s starts at unified buffer byte %llu, which is not a multiple of %u: align the tensor offset", operand,
              static_cast<unsigned long long>(offset), unit_bytes);
    }
}

}  // namespace asim
