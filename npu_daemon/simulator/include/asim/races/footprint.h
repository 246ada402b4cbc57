// The bytes that an instruction touches, as runs without gaps.
#pragma once
#include <algorithm>
#include <cstdint>

#include "asim/timing/trace_reader.h"

namespace asim {

// Calls f(begin, end) for the runs of parts of a cache line.
template <typename F>
void for_each_part(uint64_t line, uint32_t parts, F f) {
    while (parts != 0) {
        const auto first = static_cast<uint32_t>(__builtin_ctz(parts));
        const uint64_t beyond = ~uint64_t{parts} >> first;      // has a bit beyond the highest of `parts`
        const auto count = static_cast<uint32_t>(__builtin_ctzll(beyond));
        f(line + first * kLinePartBytes, line + (first + count) * kLinePartBytes);
        parts &= ~static_cast<uint32_t>(((uint64_t{1} << count) - 1) << first);
    }
}

// Whether the record does not tell which bytes of the span it writes: rows of a matrix on their way to fractals.
inline bool leaves_gaps(const Record &record, const Operand &written) {
    constexpr uint32_t kBlockBytes = 32;
    const uint64_t row_bytes = (uint64_t{record.burst_bytes} + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    return record.op == Op::CopyGmToL1 && written.stride == 0 && written.extent_bytes > record.repeats * row_bytes;
}

// Rows of equal length at equal distances; f(begin, end) for each run.
template <typename F>
void for_each_row(uint64_t address, uint64_t extent, uint64_t rows, uint64_t stride, F f) {
    const uint64_t last = rows > 1 ? (rows - 1) * stride : 0;
    if (last >= extent || extent - last >= stride) return f(address, address + extent);
    for (uint64_t row = 0; row < rows; ++row) f(address + row * stride, address + row * stride + extent - last);
}

// Calls f(begin, end) for the runs of operand `index`. What lies between the lanes of repeats that follow each other
// counts as touched: the trace does not tell a mask from a count.
template <typename F>
void for_each_run(const Entry &entry, uint32_t index, F f) {
    constexpr uint64_t kBlockBytes = 32, kRepeatBytes = 256;
    const Operand &operand = entry.operands[index];
    const uint64_t extent = operand.extent_bytes;
    if (extent == 0) return;
    const uint64_t rows = std::max<uint32_t>(entry.record.repeats, 1);
    // The 16 blocks of a transposition lie anywhere: of a span with gaps only the two ends are known to be touched.
    if (entry.record.op == Op::Transpose && extent > rows * kRepeatBytes) {
        f(operand.address, operand.address + kBlockBytes);
        return f(operand.address + extent - kBlockBytes, operand.address + extent);
    }
    if (entry.record.op == Op::ScalarAccess) {
        f(operand.address, operand.address + extent);
        return for_each_part(operand.address / kScalarLineBytes * kScalarLineBytes, operand.stride, f);
    }
    if (info(entry.record.op).pipe != Pipe::V) return for_each_row(operand.address, extent, rows, operand.stride, f);
    const uint64_t block_stride = (operand.stride & 0xffff) * kBlockBytes;
    const uint64_t repeat_stride = (operand.stride >> 16) * kBlockBytes;
    const bool dense = block_stride <= kBlockBytes && repeat_stride == kRepeatBytes;
    if (dense) return f(operand.address, operand.address + extent);
    if (block_stride <= kBlockBytes) return for_each_row(operand.address, extent, rows, repeat_stride, f);
    const uint64_t last = (rows - 1) * repeat_stride;
    if (last >= extent) return f(operand.address, operand.address + extent);
    const uint64_t blocks = (extent - last + block_stride - 1) / block_stride;
    for (uint64_t row = 0; row < rows; ++row) {
        for_each_row(operand.address + row * repeat_stride, extent - last, blocks, block_stride,
                     [&](uint64_t begin, uint64_t end) { f(begin, std::min(end, begin + kBlockBytes)); });
    }
}

}  // namespace asim
