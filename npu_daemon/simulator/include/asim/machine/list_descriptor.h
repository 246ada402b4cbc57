// The descriptor block of a tensor list: the one argument that a kernel gets for a dynamic input or output. Its words are those that
// ListTensorDesc and the raw readers of the foreach operators expect; machine/list_block.h has them.
#pragma once
#include <cstdint>

#include "asim/machine/export.h"

namespace asim {

// What a kernel reads from such a block with priced, bounds-checked scalar accesses, and keeps. Nothing in it is believed later.
struct ListDescriptor {
    const uint64_t *block = nullptr;
    const uint64_t *table = nullptr;
    uint32_t rank = 0;      // of every tensor; 0 in the short form
    uint32_t count = 0;     // 0 when the ranks differ, which ListTensorDesc cannot walk
};

ASIM_API void read_list_descriptor(const void *block, ListDescriptor *list);
ASIM_API void *list_data(ListDescriptor list, uint32_t index);
ASIM_API uint32_t list_size(ListDescriptor list);
ASIM_API void read_list_shape(ListDescriptor list, uint32_t index, uint64_t *shape);

}  // namespace asim
