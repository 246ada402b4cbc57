// Special registers of the vector unit that carry a value from one instruction to a later one.
#pragma once
#include <cstdint>

namespace asim {

constexpr uint32_t kAddressRegisters = 8, kAddressesOfRegister = 8;

struct VectorRegisters {
    uint64_t deq_scale = 0;         // bits of the dequantisation scale; see deq_scale_set
    bool deq_scale_set = false;
    uint32_t reduce_value = 0;      // bits of the last maximum or minimum over a whole instruction
    uint32_t reduce_index = 0;      // and its index, counted from the instruction's first element
    uint64_t gathered = 0;          // elements that the last GatherMask kept
    uint32_t merged[4] = {};        // records that the last MrgSort with parameters took from each queue
    uint64_t addresses[kAddressRegisters][kAddressesOfRegister] = {};  // VA0 to VA7: eight block addresses each
    uint32_t accumulated = 0;       // bits of the last accumulating sum
    uint64_t padding = 0;           // bits of the element that padded copies without a value of their own fill in
    bool padding_set = false;
};

}  // namespace asim
