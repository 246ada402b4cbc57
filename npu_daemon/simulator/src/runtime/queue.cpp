#include "asim/machine/queue.h"

#include "asim/machine/block.h"
#include "asim/machine/fault.h"
#include "asim/machine/local_memory.h"
#include "asim/machine/sync.h"

namespace asim {

namespace {

uint64_t round_to_block(uint64_t bytes) { return (bytes + kUbBlockBytes - 1) / kUbBlockBytes * kUbBlockBytes; }

void await_free(const FreedBuffer &buffer) { await_event(buffer.consumer, buffer.producer, buffer.event_id, buffer.flag); }

// A buffer is free once `consumer` is done with it; the flag tells `producer`.
void announce_free(Pipe consumer, Pipe producer, uint32_t flag) {
    Block &self = block();
    if (self.freed_count == kMaxBuffers) {
        fault(FaultKind::RuntimeFault, "FreeTensor", "a kernel has at most %u buffers in queues", kMaxBuffers);
    }
    self.freed[self.freed_count++] = {consumer, producer, flag, raise_event("FreeTensor", consumer, producer, flag)};
}

// Nothing to wait for when the buffer was never freed, or has been waited for.
void wait_until_free(uint32_t flag) {
    Block &self = block();
    for (uint32_t i = 0; i < self.freed_count; ++i) {
        if (self.freed[i].flag != flag) continue;
        await_free(self.freed[i]);
        self.freed[i] = self.freed[--self.freed_count];
        return;
    }
}

}  // namespace

void wait_for_freed_buffers() {
    Block &self = block();
    for (; self.freed_count > 0; --self.freed_count) await_free(self.freed[self.freed_count - 1]);
}

uint8_t *allocate_buffer_ub(uint64_t bytes) {
    Block &self = block();
    uint8_t *base = self.ub + self.ub_used_bytes;
    self.ub_used_bytes += round_to_block(bytes);
    return base;
}

uint8_t *allocate_queue_ub(uint64_t bytes) {
    const Block &self = block();
    if (self.ub_used_bytes + round_to_block(bytes) > self.ub_bytes) {
        fault(FaultKind::RuntimeFault, "InitBuffer",
              "unified buffer overflow: %llu bytes asked for, %llu of %u already taken; use a smaller tile or fewer buffers",
              static_cast<unsigned long long>(round_to_block(bytes)), static_cast<unsigned long long>(self.ub_used_bytes),
              self.ub_bytes);
    }
    return allocate_buffer_ub(bytes);
}

void reset_buffers() {
    block().ub_used_bytes = 0;
    reset_local();
}

void Queue::init(uint32_t buffers, uint64_t bytes_each) {
    if (buffers == 0 || buffers > kMaxQueueBuffers) {
        fault(FaultKind::RuntimeFault, "InitBuffer", "a queue holds 1 to %u buffers, got %u", kMaxQueueBuffers, buffers);
    }
    bytes_each_ = round_to_block(bytes_each);
    buffer_count_ = buffers;
    next_ = queued_count_ = 0;
    for (uint32_t i = 0; i < buffers; ++i) {
        uint8_t *base = space_ == Space::Ub ? allocate_queue_ub(bytes_each_) : allocate_local(space_, bytes_each_);
        buffers_[i] = Buffer{base, block().buffers++, 0, State::Free};
    }
}

bool Queue::has_free() const {
    for (uint32_t i = 0; i < buffer_count_; ++i) {
        if (buffers_[i].state == State::Free) return true;
    }
    return false;
}

uint8_t *Queue::allocate() {
    if (buffer_count_ == 0) {
        fault(FaultKind::RuntimeFault, "AllocTensor", "the queue has no buffers: call TPipe::InitBuffer first");
    }
    for (uint32_t tried = 0; tried < buffer_count_; ++tried) {
        Buffer &buffer = buffers_[next_];
        next_ = (next_ + 1) % buffer_count_;
        if (buffer.state == State::Free) {
            wait_until_free(buffer.flag);
            buffer.state = State::Allocated;
            return buffer.base;
        }
    }
    fault(FaultKind::RuntimeFault, "AllocTensor",
          "all %u buffers of the queue are in use: FreeTensor one first, or give the queue more buffers", buffer_count_);
}

// The buffer that a tensor lies in. Buffers of no length share an address: the one in use is meant.
Queue::Buffer &Queue::find(const char *call, const uint8_t *base) {
    Buffer *found = nullptr;
    for (uint32_t i = 0; i < buffer_count_; ++i) {
        Buffer &buffer = buffers_[i];
        const bool inside = base == buffer.base || (base > buffer.base && base < buffer.base + bytes_each_);
        if (inside && (found == nullptr || found->state == State::Free)) found = &buffer;
    }
    if (found != nullptr) return *found;
    fault(FaultKind::RuntimeFault, call, "the tensor does not lie in a buffer of this queue");
}

void Queue::enqueue(const uint8_t *base, Pipe producer, Pipe consumer) {
    Buffer &buffer = find("EnQue", base);
    if (buffer.state != State::Allocated && buffer.state != State::Taken) {
        fault(FaultKind::RuntimeFault, "EnQue", "the tensor was not allocated: AllocTensor comes first");
    }
    const uint32_t capacity = depth_ > 0 ? static_cast<uint32_t>(depth_) : buffer_count_;
    if (queued_count_ >= capacity) {
        fault(FaultKind::RuntimeFault, "EnQue", "the queue is full (depth %u): DeQue first", capacity);
    }
    order_[queued_count_++] = static_cast<uint8_t>(&buffer - buffers_);
    buffer.state = State::Queued;
    if (producer != consumer) buffer.event_id = raise_event("EnQue", producer, consumer, buffer.flag);
}

uint8_t *Queue::dequeue(Pipe producer, Pipe consumer) {
    if (queued_count_ == 0) {
        fault(FaultKind::RuntimeFault, "DeQue", "the queue is empty: this core would wait for ever");
    }
    Buffer &buffer = buffers_[order_[0]];
    --queued_count_;
    for (uint32_t i = 0; i < queued_count_; ++i) order_[i] = order_[i + 1];
    buffer.state = State::Taken;
    if (producer != consumer) await_event(producer, consumer, buffer.event_id, buffer.flag);
    return buffer.base;
}

void Queue::release(const uint8_t *base) {
    Buffer &buffer = find("FreeTensor", base);
    if (buffer.state == State::Free) {
        fault(FaultKind::RuntimeFault, "FreeTensor", "the tensor is freed twice");
    }
    if (buffer.state == State::Queued) {
        fault(FaultKind::RuntimeFault, "FreeTensor", "the tensor is still enqueued: DeQue it first");
    }
    buffer.state = State::Free;
    if (producer_ != consumer_) announce_free(consumer_, producer_, buffer.flag);
}

void Queue::free_all_events() {
    for (uint32_t i = 0; i < buffer_count_; ++i) wait_until_free(buffers_[i].flag);
}

}  // namespace asim
