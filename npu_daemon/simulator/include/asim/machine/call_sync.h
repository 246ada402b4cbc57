// Synchronisation inside calls that are more than one instruction.
#pragma once
#include "asim/machine/sync.h"

namespace asim {

constexpr uint32_t kCallFlag = 4096;    // beyond the flags of queue buffers: raised and awaited within one call

// `target` waits for what `source` was given so far.
inline void synchronise(Pipe source, Pipe target) {
    set_buffer_flag(source, target, kCallFlag);
    wait_buffer_flag(source, target, kCallFlag);
}

}  // namespace asim
