// Memories of a cube core: L1, the L0 buffers, bias table and fixpipe buffer.
#pragma once
#include <cstdint>

#include "asim/machine/block.h"

namespace asim {

// The memory of the running core that an address lies in; Gm when in none of them.
Space local_space_of(const void *pointer);

// Takes `bytes` from a memory, rounded up to its alignment; a fault when it is full.
uint8_t *allocate_local(Space space, uint64_t bytes);

// Gives all of them back.
void reset_local();

}  // namespace asim
