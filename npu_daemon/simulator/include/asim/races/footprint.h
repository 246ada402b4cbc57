// The bytes that an instruction touches, as runs without gaps.
#pragma once
#include <algorithm>
#include <cstdint>

#include "asim/timing/trace_reader.h"

namespace asim {

inline bool is_copy_in_bursts(Op op) {
    return op == Op::CopyGmToUb || op == Op::CopyUbToGm;
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
    // The 16 blocks of a transposition lie anywhere: a span with gaps does not tell which bytes of it are touched.
    if (entry.record.op == Op::Transpose && extent > rows * kRepeatBytes) return;
    if (is_copy_in_bursts(entry.record.op)) return for_each_row(operand.address, extent, rows, operand.stride, f);
    const uint64_t block_stride = (operand.stride & 0xffff) * kBlockBytes;
    const uint64_t repeat_stride = (operand.stride >> 16) * kBlockBytes;
    const bool dense = block_stride <= kBlockBytes && repeat_stride == kRepeatBytes;
    if (info(entry.record.op).pipe != Pipe::V || dense) return f(operand.address, operand.address + extent);
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
