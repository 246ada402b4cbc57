// Which core a kernel runs on, and where its memories are.
#pragma once
#include <cstdint>

#include "asim/machine/export.h"
#include "asim/machine/units.h"
#include "asim/trace/record.h"

namespace asim {

ASIM_API uint32_t block_index() __attribute__((const));         // among the cores of its kind
ASIM_API uint32_t block_count() __attribute__((const));         // groups of the launch, its block dim
ASIM_API uint32_t sub_block_index() __attribute__((const));     // among the cores of its kind in the group
ASIM_API uint32_t sub_block_count() __attribute__((const));

// Where a memory of the core starts; null for global memory and where there is no such memory.
ASIM_API uint8_t *local_memory(Space space) __attribute__((const));

// On a cube core that works for the vector cores of its group: true, and then to park until they have ended.
ASIM_API bool serves_vector_cores() __attribute__((const));
ASIM_API void wait_for_group_end();

// The kernel's TPipe begins: buffers and event ids are free. It is only remembered.
ASIM_API void begin_pipe(void *pipe);
ASIM_API void *current_pipe();
// It gives buffers and event ids back, when all freed buffers are no longer in use.
ASIM_API void reset_pipe();

}  // namespace asim
