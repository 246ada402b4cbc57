// Transposition of 16 data blocks at a time.
#pragma once
#include <cstdint>

namespace asim {

constexpr uint32_t kTransposeBlocks = 16;   // data blocks read and written by one repeat

// How the lists of 16 blocks move from repeat to repeat. With one repeat the strides shift the lists once.
struct TransposeShape {
    uint32_t repeats = 1;
    uint32_t dst_repeat_stride = 0;         // 32 B blocks
    uint32_t src_repeat_stride = 0;
    bool dst_high_half = false;             // 8 bit elements use one half of each block
    bool src_high_half = false;
};

// Row i of the source matrix is the block at src[i]; the columns become rows at the blocks of dst.
// 16 bit elements: 16 x 16; 32 bit: 16 x 8, each of the 8 rows in two blocks that follow each other in dst;
// 8 bit: 16 x 16 out of one half of the blocks.
template <typename Bits>
void transpose_blocks(const uint64_t dst[kTransposeBlocks], const uint64_t src[kTransposeBlocks], const TransposeShape &shape);

}  // namespace asim
