// What padded copies fill in.
#pragma once
#include "asim/machine/block.h"
#include "asim/semantics/copy.h"

namespace asim {

// A copy that has no value of its own takes the register's, if that was set.
inline void take_padding(PadShape &pad) {
    if (pad.fill || !vector_registers().padding_set) return;
    pad.fill = true;
    pad.value = vector_registers().padding;
}

}  // namespace asim
