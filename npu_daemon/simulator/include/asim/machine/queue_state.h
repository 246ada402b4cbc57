// The state of a queue, and what queues take of the memories.
#pragma once
#include <cstdint>
#include <vector>

#include "asim/machine/queue.h"

namespace asim {

constexpr uint32_t kMaxQueueBuffers = 16;

// The pipes that fill queues wait until the buffers that were freed are no longer in use.
void wait_for_freed_buffers();
void reset_buffers();

// A queue of equally sized buffers between a producing and a consuming pipe.
class Queue {
public:
    explicit Queue(const QueueShape &shape) : shape_(shape) {}

    // In memory of its own, or in a pool from `pooled` on.
    void init(uint32_t buffers, uint64_t bytes_each, uint8_t *pooled = nullptr);
    void add(uint8_t *base, uint64_t bytes);
    uint8_t *allocate();
    // Between the pipes that the caller names, which need not be the queue's own.
    void enqueue(const uint8_t *buffer, Pipe producer, Pipe consumer);
    uint8_t *dequeue(Pipe producer, Pipe consumer);
    void release(const uint8_t *buffer);
    void free_all_events();
    bool has_free() const;
    uint32_t queued_count() const { return queued_count_; }

private:
    enum class State : uint8_t { Free, Allocated, Queued, Taken };
    struct Buffer {
        uint8_t *base = nullptr;
        uint32_t flag = 0;
        uint32_t event_id = 0;      // while enqueued
        State state = State::Free;
    };
    Buffer &find(const char *call, const uint8_t *base);

    QueueShape shape_;
    uint64_t bytes_each_ = 0;
    uint32_t next_ = 0;
    uint32_t queued_count_ = 0;
    std::vector<Buffer> buffers_;
    uint8_t order_[kMaxQueueBuffers] = {};
};

}  // namespace asim
