// The descriptor block of a tensor list: the one argument that a kernel gets for a dynamic input or output.
//
// Layout, in 8-byte words, as ListTensorDesc and the raw readers of the foreach operators expect it:
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

// What a kernel reads from such a block with priced, bounds-checked scalar accesses.
struct ListDescriptor {
    const uint64_t *block = nullptr;
    const uint64_t *table = nullptr;
    uint32_t rank = 0;      // of every tensor; 0 in the short form
    uint32_t count = 0;     // 0 when the ranks differ, which ListTensorDesc cannot walk
};

ListDescriptor read_list_descriptor(const void *block);
void *list_data(const ListDescriptor &list, uint32_t index);
uint32_t list_size(const ListDescriptor &list);
void read_list_shape(const ListDescriptor &list, uint32_t index, uint64_t *shape);

}  // namespace asim
