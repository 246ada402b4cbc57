// Transposition of 16 data blocks at a time.
#include "asim/semantics/transpose.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "asim/machine/kernel_memory.h"
#include "asim/semantics/indexed_lanes.h"

namespace asim {

namespace {

using Blocks = uint8_t *[kTransposeBlocks];

void locate(Blocks &blocks, const uint64_t (&addresses)[kTransposeBlocks], uint32_t shift_blocks) {
    for (uint32_t i = 0; i < kTransposeBlocks; ++i) {
        blocks[i] = reinterpret_cast<uint8_t *>(static_cast<uintptr_t>(addresses[i])) + uint64_t{shift_blocks} * kUbBlockBytes;
    }
}

// The span of the unified buffer that the blocks of all repeats lie in.
Operand blocks_operand(const char *role, const uint64_t (&addresses)[kTransposeBlocks], uint32_t repeats, uint32_t stride,
                       uint32_t first_shift) {
    uint64_t low = UINT64_MAX;
    uint64_t high = 0;
    Blocks blocks;
    for (const uint32_t shift : {first_shift, first_shift + (repeats == 0 ? 0 : repeats - 1) * stride}) {
        locate(blocks, addresses, shift);
        for (const uint8_t *each : blocks) {
            const uint64_t offset = checked_ub("TransDataTo5HD", each, kUbBlockBytes);
            check_ub_alignment("TransDataTo5HD", role, offset, kUbBlockBytes);
            low = std::min(low, offset);
            high = std::max(high, offset + kUbBlockBytes);
        }
    }
    return {low, static_cast<uint64_t>(Space::Ub), static_cast<uint32_t>(high - low), 1u};
}

template <typename Bits>
Bits *cell(const Blocks &blocks, uint32_t block_index, uint32_t element) {
    return reinterpret_cast<Bits *>(blocks[block_index]) + element;
}

template <typename Bits>
void transpose_once(const Blocks &dst, const Blocks &src, const TransposeShape &shape) {
    constexpr uint32_t per_block = kUbBlockBytes / sizeof(Bits);
    constexpr uint32_t columns = std::min(per_block, kTransposeBlocks);
    constexpr uint32_t blocks_per_row = std::max(1u, kTransposeBlocks / per_block);
    const uint32_t src_half = sizeof(Bits) == 1 && shape.src_high_half ? kTransposeBlocks : 0;
    const uint32_t dst_half = sizeof(Bits) == 1 && shape.dst_high_half ? kTransposeBlocks : 0;
    Bits values[kTransposeBlocks][columns];
    for (uint32_t row = 0; row < kTransposeBlocks; ++row) {
        for (uint32_t column = 0; column < columns; ++column) values[row][column] = *cell<Bits>(src, row, src_half + column);
    }
    for (uint32_t column = 0; column < columns; ++column) {
        for (uint32_t row = 0; row < kTransposeBlocks; ++row) {
            *cell<Bits>(dst, column * blocks_per_row + row / per_block, dst_half + row % per_block) = values[row][column];
        }
    }
}

}  // namespace

namespace {

// Within a repeat results lie where sources do, or apart; no repeat writes what a later one reads.
void check_blocks_overlap(const uint64_t (&dst)[kTransposeBlocks], const uint64_t (&src)[kTransposeBlocks], const TransposeShape &shape,
                          uint32_t dst_shift, uint32_t src_shift) {
    const auto place = [](uint64_t address, uint32_t shift, uint32_t repeat, uint32_t stride) {
        return address + (uint64_t{shift} + uint64_t{repeat} * stride) * kUbBlockBytes;
    };
    std::vector<std::pair<uint64_t, uint32_t>> read;       // where a block begins, and the repeat
    for (uint32_t repeat = 0; repeat < shape.repeats; ++repeat) {
        for (const uint64_t address : src) read.push_back({place(address, src_shift, repeat, shape.src_repeat_stride), repeat});
    }
    std::sort(read.begin(), read.end());
    for (uint32_t repeat = 0; repeat < shape.repeats; ++repeat) {
        for (const uint64_t address : dst) {
            const uint64_t begin = place(address, dst_shift, repeat, shape.dst_repeat_stride);
            for (auto found = std::lower_bound(read.begin(), read.end(), std::pair{begin - kUbBlockBytes + 1, 0u});
                 found != read.end() && found->first < begin + kUbBlockBytes; ++found) {
                if (found->second <= repeat) continue;
                fault(FaultKind::RuntimeFault, "TransDataTo5HD", "dst overlaps src: repeat %u writes what repeat %u reads; use another buffer", repeat,
                      found->second);
            }
        }
    }
}

template <typename Bits>
void transpose_lists(const uint64_t (&dst)[kTransposeBlocks], const uint64_t (&src)[kTransposeBlocks], const TransposeShape &shape) {
    for (const uint32_t units : {shape.repeats, shape.dst_repeat_stride, shape.src_repeat_stride}) check_units("TransDataTo5HD", "a stride or repeat", units);
    constexpr uint32_t repeats_per_transpose = kTransposeBlocks * kUbBlockBytes / kRepeatBytes;
    const uint32_t dst_shift = shape.repeats == 1 ? shape.dst_repeat_stride : 0;
    const uint32_t src_shift = shape.repeats == 1 ? shape.src_repeat_stride : 0;
    if (shape.repeats == 0) {
        return;
    }
    const Operand out = blocks_operand("dst", dst, shape.repeats, shape.dst_repeat_stride, dst_shift);
    const Operand in = blocks_operand("src", src, shape.repeats, shape.src_repeat_stride, src_shift);
    const bool may_overlap = out.address < in.address + in.extent_bytes && in.address < out.address + out.extent_bytes;
    if (may_overlap && shape.repeats > 1 && block().library_calls == 0) check_blocks_overlap(dst, src, shape, dst_shift, src_shift);
    for (uint32_t repeat = 0; repeat < shape.repeats; ++repeat) {
        Blocks to, from;
        locate(to, dst, dst_shift + repeat * shape.dst_repeat_stride);
        locate(from, src, src_shift + repeat * shape.src_repeat_stride);
        transpose_once<Bits>(to, from, shape);
    }
    emit_vector(Op::Transpose, sizeof(Bits), shape.repeats * repeats_per_transpose, {out, in});
}

}  // namespace

template <typename Bits>
void transpose_blocks(const uint64_t dst[kTransposeBlocks], const uint64_t src[kTransposeBlocks], TransposeShape shape) {
    uint64_t lists[2][kTransposeBlocks];
    kernel_access(dst, sizeof lists[0], false);
    kernel_access(src, sizeof lists[1], false);
    std::copy_n(dst, kTransposeBlocks, lists[0]);
    std::copy_n(src, kTransposeBlocks, lists[1]);
    transpose_lists<Bits>(lists[0], lists[1], shape);
}

void transpose_by_registers(uint32_t dst, uint32_t src, uint32_t repeats, uint32_t dst_repeat_stride, uint32_t src_repeat_stride) {
    if (dst + 1ull >= kAddressRegisters || src + 1ull >= kAddressRegisters) {
        fault(FaultKind::RuntimeFault, "scatter_vnchwconv", "VA%u is not followed by another address register", std::max(dst, src));
    }
    const auto &addresses = vector_registers().addresses;
    uint64_t lists[2][kTransposeBlocks];
    for (uint32_t i = 0; i < kTransposeBlocks; ++i) {
        lists[0][i] = addresses[dst + i / kAddressesOfRegister][i % kAddressesOfRegister];
        lists[1][i] = addresses[src + i / kAddressesOfRegister][i % kAddressesOfRegister];
    }
    transpose_lists<uint16_t>(lists[0], lists[1], {repeats, dst_repeat_stride, src_repeat_stride, false, false});
}

template void transpose_blocks<uint8_t>(const uint64_t[], const uint64_t[], TransposeShape);
template void transpose_blocks<uint16_t>(const uint64_t[], const uint64_t[], TransposeShape);
template void transpose_blocks<uint32_t>(const uint64_t[], const uint64_t[], TransposeShape);

}  // namespace asim
