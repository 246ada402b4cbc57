#include "asim/machine/vector_registers.h"

#include <deque>

#include "asim/machine/block.h"

namespace asim {

VectorRegisters &vector_registers() {
    static std::deque<VectorRegisters> registers;
    const Block &self = block();
    if (registers.size() <= self.index) {
        registers.resize(self.index + 1);
    }
    return registers[self.index];
}

}  // namespace asim
