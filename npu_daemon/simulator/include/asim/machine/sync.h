// Flags and barriers between pipes, and scalar accesses to on-chip and global memory.
#pragma once
#include <cstdint>

#include "asim/trace/record.h"

namespace asim {

void set_flag(Pipe source, Pipe target, uint32_t event_id);
void wait_flag(Pipe source, Pipe target, uint32_t event_id);
void pipe_barrier(Pipe pipe);

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

uint32_t fetch_event_id(Pipe source, Pipe target);
uint32_t alloc_event_id(Pipe source, Pipe target);
void release_event_id(Pipe source, Pipe target, uint32_t event_id);

void *scalar_ub(const char *call, void *pointer, uint32_t bytes, bool write);
void *scalar_gm(const char *call, void *pointer, uint32_t bytes, bool write);
// Where a value is about to be stored.
void *scalar_gm_store(const char *call, void *pointer, const void *value, uint32_t bytes);
// Likewise, past the data cache.
void *uncached_gm(const char *call, void *pointer, uint32_t bytes, bool write);
// Writes the line of the data cache that holds the address back to global memory, from there on; all of them for null.
void clean_cache(const void *address);
// By a raw pointer, of any alignment.
void *native_ub(const char *call, void *pointer, uint32_t bytes, bool write);
void *native_gm(const char *call, void *pointer, uint32_t bytes, bool write);

}  // namespace asim
