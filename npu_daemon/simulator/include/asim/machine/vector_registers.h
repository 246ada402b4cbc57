// Special registers of the vector unit that carry a value from one instruction to a later one.
#pragma once
#include <cstdint>

namespace asim {

struct VectorRegisters {
    uint64_t deq_scale = 0;         // bits of the dequantisation scale; see deq_scale_set
    bool deq_scale_set = false;
    uint32_t reduce_value = 0;      // bits of the last maximum or minimum over a whole instruction
    uint32_t reduce_index = 0;      // and its index, counted from the instruction's first element
    uint64_t gathered = 0;          // elements that the last GatherMask kept
    uint32_t merged[4] = {};        // records that the last MrgSort with parameters took from each queue
    uint64_t addresses[8][8] = {};  // VA0 to VA7: eight block addresses each
    uint32_t accumulated = 0;       // bits of the last accumulating sum
    uint64_t padding = 0;           // bits of the element that padded copies without a value of their own fill in
    bool padding_set = false;
};

// Those of the running block.
VectorRegisters &vector_registers();

// Writes to the mask register, out of line so that they cost kernels nothing beside the call they belong to.
void keep_mask(uint64_t low, uint64_t high);
void keep_leading_mask(uint64_t lanes);     // in counter mode the number of elements
void reset_mask();                          // all lanes, normal mode

}  // namespace asim
