// Queues that pass buffers of on-chip memory between pipes. A kernel holds the number of a queue, 0 before it has buffers.
#pragma once
#include <cstdint>

#include "asim/machine/export.h"
#include "asim/trace/record.h"

namespace asim {

// The SPM buffer: global memory for what does not fit into the unified buffer.
ASIM_API void keep_spill(uint8_t *base, uint32_t bytes);
ASIM_API uint8_t *part_of_spill(int32_t offset, uint64_t bytes);

// Takes `bytes` from a memory for a TBuf. One in the unified buffer that does not fit is a fault only once it is touched, as on the
// device: operators initialise buffers that the element type at hand never needs.
ASIM_API uint8_t *allocate_buffer(Space space, uint32_t bytes);

// How a queue is declared: `depth` tensors at a time between two pipes, in buffers of one memory.
struct QueueShape {
    Pipe producer;
    Pipe consumer;
    Space space;
    int32_t depth;
};

// Gives a queue its buffers, which must fit; returns its number. `queue` is the number that it had before.
ASIM_API uint32_t queue_init(uint32_t queue, QueueShape shape, uint32_t buffers, uint32_t bytes_each);

// Memory that a kernel divides into buffers itself, and what of it is taken. Pools may share their memory.
struct BufferPool {
    uint8_t *base = nullptr;
    Space space = Space::Ub;
    uint32_t bytes = 0;
    uint32_t used_bytes = 0;
    uint32_t buffers = 0;
    uint32_t most_buffers = 0;
};
// Takes the memory of a pool, which must fit.
ASIM_API uint8_t *allocate_pool(Space space, uint32_t bytes);
// Where the next `buffers` buffers of the pool begin, or another pool if there are none; faults unless they fit.
ASIM_API uint8_t *pool_next(BufferPool pool, uint32_t buffers, uint32_t bytes_each);
// As queue_init, from `pool_next` on.
ASIM_API uint32_t queue_init_in_pool(uint32_t queue, QueueShape shape, uint32_t buffers, uint32_t bytes_each, BufferPool pool);
// One more buffer for a queue that has one, from `pool_next` on.
ASIM_API void queue_add_buffer(uint32_t queue, BufferPool pool, uint32_t bytes);
ASIM_API uint8_t *queue_allocate(uint32_t queue);
ASIM_API void queue_enqueue(uint32_t queue, const uint8_t *buffer, Pipe producer, Pipe consumer);
ASIM_API uint8_t *queue_dequeue(uint32_t queue, Pipe producer, Pipe consumer);
ASIM_API void queue_release(uint32_t queue, const uint8_t *buffer);
// Waits until the buffers that were freed are no longer in use, and gives their event ids back.
ASIM_API void queue_free_all_events(uint32_t queue);
ASIM_API uint32_t queue_count(uint32_t queue);
ASIM_API bool queue_has_free(uint32_t queue);

}  // namespace asim
