// Transposition of 16 data blocks at a time.
#pragma once
#include <cstdint>

#include "asim/machine/export.h"
#include "asim/machine/units.h"

namespace asim {

constexpr uint32_t kTransposeBlocks = 16;   // data blocks read and written by one repeat

// How the lists of 16 blocks move from repeat to repeat. With one repeat the strides shift the lists once.
struct TransposeShape {
    uint32_t repeats = 1;
    uint32_t dst_repeat_stride = 0;         // 32 B blocks
    uint32_t src_repeat_stride = 0;
    Flag dst_high_half = false;             // 8 bit elements use one half of each block
    Flag src_high_half = false;
};

// Row i of the source matrix is the block at src[i]; the columns become rows at the blocks of dst.
// 16 bit elements: 16 x 16; 32 bit: 16 x 8, each of the 8 rows in two blocks that follow each other in dst;
// 8 bit: 16 x 16 out of one half of the blocks.
template <typename Bits>
ASIM_API void transpose_blocks(const uint64_t dst[kTransposeBlocks], const uint64_t src[kTransposeBlocks], TransposeShape shape);

// Elements of 16 bits, at the addresses that two address registers hold, this one and the next.
ASIM_API void transpose_by_registers(uint32_t dst, uint32_t src, uint32_t repeats, uint32_t dst_repeat_stride, uint32_t src_repeat_stride);

}  // namespace asim
