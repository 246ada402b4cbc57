// Buffers of on-chip memory and the queues that pass them between pipes.
#pragma once
#include <cstdint>

#include "asim/trace/record.h"

namespace asim {

// Takes `bytes` from the block's unified buffer; 32 B aligned. A queue uses what it gets, so it must fit.
// A TBuf that does not fit is a fault only once it is touched, as on the device: operators initialise buffers
// that the element type at hand never needs.
uint8_t *allocate_queue_ub(uint64_t bytes);
uint8_t *allocate_buffer_ub(uint64_t bytes);
void reset_buffers();

// The pipes that fill queues wait until the buffers that were freed are no longer in use.
void wait_for_freed_buffers();

constexpr uint32_t kMaxQueueBuffers = 16;

// A queue of equally sized buffers between a producing and a consuming pipe.
class Queue {
public:
    Queue(Pipe producer, Pipe consumer, int32_t depth, Space space = Space::Ub)
        : producer_(producer), consumer_(consumer), space_(space), depth_(depth) {}

    void init(uint32_t buffers, uint64_t bytes_each);
    uint8_t *allocate();
    void enqueue(const uint8_t *buffer) { enqueue(buffer, producer_, consumer_); }
    uint8_t *dequeue() { return dequeue(producer_, consumer_); }
    // Likewise, between the pipes that the caller names instead of the queue's own.
    void enqueue(const uint8_t *buffer, Pipe producer, Pipe consumer);
    uint8_t *dequeue(Pipe producer, Pipe consumer);
    void release(const uint8_t *buffer);
    // Waits until the buffers that were freed are no longer in use, and gives their event ids back.
    void free_all_events();

    uint64_t bytes_each() const { return bytes_each_; }
    bool has_queued() const { return queued_count_ > 0; }
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

    Pipe producer_;
    Pipe consumer_;
    Space space_;
    int32_t depth_;
    uint64_t bytes_each_ = 0;
    uint32_t buffer_count_ = 0;
    uint32_t next_ = 0;
    uint32_t queued_count_ = 0;
    Buffer buffers_[kMaxQueueBuffers];
    uint8_t order_[kMaxQueueBuffers] = {};
};

}  // namespace asim
