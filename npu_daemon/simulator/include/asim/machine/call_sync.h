// Synchronisation inside calls that are more than one instruction.
#pragma once
#include "asim/machine/block.h"
#include "asim/machine/buffer_flags.h"

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
    LibraryCall() {
        if (block().library_calls++ == 0) block().call_begun = false;
    }
    LibraryCall(const LibraryCall &) { ++block().library_calls; }
    ~LibraryCall() { --block().library_calls; }
    LibraryCall &operator=(const LibraryCall &) = default;
};

// While one lives, vector instructions and barriers change memory but are not issued: the library takes other ones for the
// same values.
class ValuesOnly {
public:
    ValuesOnly() { ++block().values_only; }
    ValuesOnly(const ValuesOnly &) = delete;
    ValuesOnly &operator=(const ValuesOnly &) = delete;
    ~ValuesOnly() { --block().values_only; }
};

// source_pipe of the vector instruction that comes next. Before the first one of a call there is no barrier.
inline uint8_t place_in_call() {
    Block &self = block();
    if (self.library_calls == 0) return 0;
    const uint8_t place = self.call_begun ? kInsideCall : 0;
    self.call_begun = true;
    return place;
}

}  // namespace asim
