#include "asim/machine/vector_registers.h"

#include <deque>

#include "asim/machine/block.h"
#include "asim/semantics/vector.h"

namespace asim {

VectorRegisters &vector_registers() {
    static std::deque<VectorRegisters> registers;
    const Block &self = block();
    if (registers.size() <= self.index) {
        registers.resize(self.index + 1);
    }
    return registers[self.index];
}

void keep_mask(uint64_t low, uint64_t high) {
    block().mask[0] = low;
    block().mask[1] = high;
}

void keep_leading_mask(uint64_t lanes) {
    if (block().counter_mode) {
        keep_mask(lanes, 0);
    } else {
        const Shape shape = Shape::leading(lanes, 1);
        keep_mask(shape.mask[0], shape.mask[1]);
    }
}

void reset_mask() {
    block().counter_mode = false;
    keep_mask(~0ull, ~0ull);
}

}  // namespace asim
