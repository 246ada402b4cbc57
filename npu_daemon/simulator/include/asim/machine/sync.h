// Flags and barriers between pipes, and scalar accesses to on-chip and global memory.
#pragma once
#include <cstdint>

#include "asim/trace/record.h"

namespace asim {

void set_flag(Pipe source, Pipe target, uint32_t event_id);
void wait_flag(Pipe source, Pipe target, uint32_t event_id);
void pipe_barrier(Pipe pipe);

// Flags of queue buffers: raised and awaited by queues, in an id range of their own.
void set_buffer_flag(Pipe source, Pipe target, uint32_t buffer);
void wait_buffer_flag(Pipe source, Pipe target, uint32_t buffer);

uint32_t fetch_event_id(Pipe source, Pipe target);
uint32_t alloc_event_id(Pipe source, Pipe target);
void release_event_id(Pipe source, Pipe target, uint32_t event_id);

void *scalar_ub(const char *call, void *pointer, uint32_t bytes, bool write);
void *native_ub(const char *call, void *pointer, uint32_t bytes, bool write);  // by a raw pointer, of any alignment
void *scalar_gm(const char *call, void *pointer, uint32_t bytes, bool write);

}  // namespace asim
