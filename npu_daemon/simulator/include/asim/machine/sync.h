// Flags and barriers between pipes and between cores, as kernels use them.
#pragma once
#include <cstdint>

#include "asim/machine/export.h"
#include "asim/machine/units.h"
#include "asim/trace/record.h"

namespace asim {

ASIM_API void set_flag(Pipe source, Pipe target, uint32_t event_id);
ASIM_API void wait_flag(Pipe source, Pipe target, uint32_t event_id);
ASIM_API void pipe_barrier(Pipe pipe);

ASIM_API uint32_t fetch_event_id(Pipe source, Pipe target);
ASIM_API uint32_t alloc_event_id(Pipe source, Pipe target);
ASIM_API void release_event_id(Pipe source, Pipe target, uint32_t event_id);

// Hands control to the other blocks until all of the launch, or all of this kind of core, have arrived here.
ASIM_API void sync_all_blocks(bool all_kinds);
// The meeting of all vector cores by signals in global memory: 32 bytes for each, zero at first, and as many in UB to read
// them. `used_cores` is the number of cores that meet; 0: all. On a cube core nothing happens.
ASIM_API void sync_by_signals(const int32_t *signals, const uint8_t *work, uint32_t used_cores);

// `mode` as CrossCoreSetFlag numbers it: 0, 1 or 2. Takes effect when `pipe` has done what was issued to it. Of a flag's number
// the lowest four bits count.
ASIM_API void cross_core_set(uint32_t mode, Pipe pipe, uint32_t flag);
// Blocks the core until the flag's counter is not zero, and takes one from it.
ASIM_API void cross_core_wait(uint32_t flag);

// Writes the line of the data cache that holds the address back to global memory, from there on; or all of them.
ASIM_API void clean_cache(const void *address);
ASIM_API void clean_whole_cache();

}  // namespace asim
