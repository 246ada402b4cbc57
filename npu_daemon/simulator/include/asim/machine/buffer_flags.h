// Flags and event ids of queue buffers, and what holds at the end of a block.
#pragma once
#include <cstdint>

#include "asim/trace/record.h"

namespace asim {

// At the end of a block: every flag that was set has been waited for.
void check_flags_awaited();

// Flags of queue buffers: raised and awaited by queues, in an id range of their own.
void set_buffer_flag(Pipe source, Pipe target, uint32_t buffer);
void wait_buffer_flag(Pipe source, Pipe target, uint32_t buffer);

// Likewise for one buffer, which holds an event id of the pair of pipes from the first call to the second, as the library takes
// it: no other buffer and no flag of the kernel's own can have it meanwhile. `call` is what faults name.
uint32_t raise_event(const char *call, Pipe source, Pipe target, uint32_t buffer);
void await_event(Pipe source, Pipe target, uint32_t event_id, uint32_t buffer);
// A TPipe begins anew: all ids are free, whatever is still set.
void forget_event_ids();

// Ends the launch when a kernel names pipes that do not exist.
void check_pipes(const char *call, Pipe source, Pipe target);

}  // namespace asim
