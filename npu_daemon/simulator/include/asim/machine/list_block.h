// Makes the descriptor block of a tensor list. Layout, in 8-byte words:
//   word 0            byte offset from the start of the block to the address table
//   for each tensor   rank in the low half, index in the list in the high half; then one word per dimension
//   address table     one word per tensor: where its data starts in GM
// A scalar is described as a tensor of shape [1], because rank 0 marks the short form without shapes:
// word 1 = tensor count in the high half, word 2 = 0xffffffff, table at byte 24.
#pragma once
#include <cstdint>
#include <vector>

namespace asim {

struct ListEntry {
    const void *data = nullptr;
    std::vector<uint64_t> shape;
};

// The words of the block; copy them to GM and pass the address of the copy to the kernel.
std::vector<uint64_t> build_list_descriptor(const std::vector<ListEntry> &tensors);

}  // namespace asim
