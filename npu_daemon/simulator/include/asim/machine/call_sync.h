// Synchronisation inside calls that are more than one instruction.
#pragma once
#include "asim/machine/block.h"
#include "asim/machine/sync.h"

namespace asim {

constexpr uint32_t kCallFlag = 4096;    // beyond the flags of queue buffers: raised and awaited within one call

// `target` waits for what `source` was given so far.
inline void synchronise(Pipe source, Pipe target) {
    set_buffer_flag(source, target, kCallFlag);
    wait_buffer_flag(source, target, kCallFlag);
}

// While one lives, a call that is made of several instructions is under way: it has the barriers between them that it needs.
class LibraryCall {
public:
    LibraryCall() { ++block().library_calls; }
    LibraryCall(const LibraryCall &) { ++block().library_calls; }
    ~LibraryCall() { --block().library_calls; }
    LibraryCall &operator=(const LibraryCall &) = default;
};

}  // namespace asim
