#include "asim/machine/queue_state.h"

#include <algorithm>

#include "asim/check/check.h"
#include "asim/machine/block.h"
#include "asim/machine/call_sync.h"
#include "asim/machine/fault.h"
#include "asim/machine/local_memory.h"
#include "asim/machine/buffer_flags.h"
#include "asim/machine/kernel_objects.h"

namespace asim {

uint64_t g_ub_taken_bytes = 0;

namespace {

constexpr uint32_t kBufferFlags = kCallFlag - kBufferFlagBase;

// Loads and stores of what a queue, its buffer and the pool of event ids know, in the published source (asc-devkit,
// impl/basic_api: kernel_tquebind_impl.h and kernel_tpipe_impl.h at 2201). Queues and pipe lie on the stack, and no compiler keeps
// them in registers: all queues reach the pool by the address of the pipe.
constexpr uint32_t kAllocateAccesses = 14;  // cursor, state and event of the buffer; the id goes back to the pool; address and length
constexpr uint32_t kEnqueueAccesses = 7;    // the ring, the count, an id from the pool
constexpr uint32_t kDequeueAccesses = 11;   // the ring, the count, the id back to the pool, address and length
constexpr uint32_t kReleaseAccesses = 6;    // an id from the pool, state and count
constexpr uint32_t kInitAccesses = 8;       // of a queue or TBuf: its own state and what the pipe has handed out
constexpr uint32_t kInitBufferAccesses = 8; // of each of its buffers

void count_accesses(uint32_t accesses) { count_scalar(ScalarClass::Queue, accesses); }

uint64_t round_to_block(uint64_t bytes) { return (bytes + kUbBlockBytes - 1) / kUbBlockBytes * kUbBlockBytes; }

void await_free(const FreedBuffer &buffer) { await_event(buffer.consumer, buffer.producer, buffer.event_id, buffer.flag); }

// A buffer is free once `consumer` is done with it; the flag tells `producer`.
void announce_free(Pipe consumer, Pipe producer, uint32_t flag) {
    Block &self = block();
    if (self.freed_count >= kMaxBuffers) {
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

namespace {

// Notes where a buffer ends, as far as it lies in UB.
void note_buffer(Block &self, uint64_t first, uint64_t bytes) {
    if (self.buffer_ends.empty()) self.buffer_ends.resize(self.ub_bytes / kUbBlockBytes);
    const uint64_t units = self.buffer_ends.size(), begin = std::min(first / kUbBlockBytes, units);
    const uint64_t end = std::min((first + bytes) / kUbBlockBytes, units);
    std::fill(self.buffer_ends.begin() + begin, self.buffer_ends.begin() + end, static_cast<uint16_t>(end));
}

uint8_t *take_ub(uint64_t bytes) {
    Block &self = block();
    const uint64_t first = self.ub_used_bytes, taken = round_to_block(bytes);
    uint8_t *base = self.ub + first;
    self.ub_used_bytes += taken;
    if (!on_cube_core()) g_ub_taken_bytes = std::max(g_ub_taken_bytes, self.ub_used_bytes);
    note_buffer(self, first, taken);
    if (self.ub_used_bytes > self.ub_bytes) {
        warn(Warning::BufferOverflow, "InitBuffer",
             "a buffer of %llu bytes does not fit: %llu of %u are taken; nothing of it may be touched beyond the end of the unified buffer",
             static_cast<unsigned long long>(taken), static_cast<unsigned long long>(first), self.ub_bytes);
    }
    return base;
}

uint8_t *take_queue_ub(uint64_t bytes) {
    const Block &self = block();
    if (self.ub_used_bytes + round_to_block(bytes) > self.ub_bytes) {
        fault(FaultKind::RuntimeFault, "InitBuffer",
              "unified buffer overflow: %llu bytes asked for, %llu of %u already taken; use a smaller tile or fewer buffers",
              static_cast<unsigned long long>(round_to_block(bytes)), static_cast<unsigned long long>(self.ub_used_bytes),
              self.ub_bytes);
    }
    return take_ub(bytes);
}

void require_pipe() {
    if (block().pipe != nullptr) return;
    fault(FaultKind::RuntimeFault, "InitBuffer",
          "the kernel has no TPipe: InitBuffer is called by a pointer that is null or points to none; make a TPipe and hand on its address");
}

void check_space(Space space) {
    if (static_cast<uint32_t>(space) < kSpaceCount && space != Space::Gm) return;
    fault(FaultKind::RuntimeFault, "InitBuffer", "buffers lie in memories of a core, there is none of number %u", static_cast<unsigned>(space));
}

}  // namespace

uint8_t *allocate_buffer(Space space, uint32_t bytes) {
    require_pipe();
    check_space(space);
    count_accesses(kInitAccesses + kInitBufferAccesses);
    return space == Space::Ub ? take_ub(bytes) : allocate_local(space, bytes);
}

void reset_buffers() {
    block().ub_used_bytes = 0;
    block().buffer_ends.clear();
    if (block().objects) block().objects->release_l1();
    reset_local();
}

void keep_spill(uint8_t *base, uint32_t bytes) {
    block().spill = base;
    block().spill_bytes = bytes;
}

uint8_t *part_of_spill(int32_t offset, uint64_t bytes) {
    const Block &self = block();
    if (self.spill == nullptr) fault(FaultKind::RuntimeFault, "WriteSpmBuffer or ReadSpmBuffer", "there is no SPM buffer: call InitSpmBuffer first");
    if (offset < 0 || bytes > self.spill_bytes || static_cast<uint32_t>(offset) > self.spill_bytes - bytes) {
        fault(FaultKind::RuntimeFault, "WriteSpmBuffer or ReadSpmBuffer",
              "%llu bytes from byte %d on do not lie in the SPM buffer of %u bytes, the size that InitSpmBuffer was given",
              static_cast<unsigned long long>(bytes), offset, self.spill_bytes);
    }
    return self.spill + offset;
}

uint8_t *allocate_pool(Space space, uint32_t bytes) {
    require_pipe();
    check_space(space);
    count_accesses(kInitAccesses);
    return space == Space::Ub ? take_queue_ub(bytes) : allocate_local(space, bytes);
}

namespace {

void check_pool(const BufferPool &pool) {
    if (pool.base == nullptr) {
        fault(FaultKind::RuntimeFault, "InitBuffer", "the pool has no memory: call InitBufPool for it first, also after its Reset");
    }
    check_space(pool.space);
    const LocalMemory &memory = block().memories[static_cast<int>(pool.space)];
    const uint8_t *const begin = pool.space == Space::Ub ? block().ub : memory.base;
    const uint64_t bytes = pool.space == Space::Ub ? block().ub_bytes : memory.bytes;
    const auto offset = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pool.base) - reinterpret_cast<uintptr_t>(begin));
    if (offset <= bytes && pool.bytes <= bytes - offset && pool.used_bytes <= pool.bytes) return;
    fault(FaultKind::RuntimeFault, "InitBuffer", "the pool does not lie in %s", memory_name(pool.space));
}

}  // namespace

uint8_t *pool_next(BufferPool pool, uint32_t buffers, uint32_t bytes_each) {
    require_pipe();
    check_pool(pool);
    if (buffers > 0 && uint64_t{pool.buffers} + buffers > pool.most_buffers) {
        fault(FaultKind::RuntimeFault, "InitBuffer",
              "the pool holds at most %u buffers and has %u: declare it with a larger bufIDSize, up to 16", pool.most_buffers, pool.buffers);
    }
    const uint64_t taken = round_to_block(bytes_each) * std::max(buffers, 1u);
    if (taken > pool.bytes - pool.used_bytes) {
        fault(FaultKind::RuntimeFault, "InitBuffer", "pool overflow: %llu bytes asked for, %u of %u already taken",
              static_cast<unsigned long long>(taken), pool.used_bytes, pool.bytes);
    }
    count_accesses(kInitAccesses + buffers * kInitBufferAccesses);
    return pool.base + pool.used_bytes;
}

void Queue::init(uint32_t buffers, uint64_t bytes_each, uint8_t *pooled) {
    if (buffers == 0 || buffers > kMaxQueueBuffers) {
        fault(FaultKind::RuntimeFault, "InitBuffer", "a queue holds 1 to %u buffers, got %u", kMaxQueueBuffers, buffers);
    }
    bytes_each_ = round_to_block(bytes_each);
    next_ = queued_count_ = 0;
    buffers_.clear();
    for (uint32_t i = 0; i < buffers; ++i) {
        uint8_t *base = pooled + i * bytes_each_;
        if (pooled == nullptr) base = shape_.space == Space::Ub ? take_queue_ub(bytes_each_) : allocate_local(shape_.space, bytes_each_);
        buffers_.push_back({base, block().buffers++ % kBufferFlags, 0, State::Free});
    }
}

void Queue::add(uint8_t *base, uint64_t bytes) {
    if (buffers_.size() >= kMaxQueueBuffers) {
        fault(FaultKind::RuntimeFault, "InitBufHandle", "a queue holds 1 to %u buffers, this is one more", kMaxQueueBuffers);
    }
    if (round_to_block(bytes) != bytes_each_) {
        fault(FaultKind::RuntimeFault, "InitBufHandle", "a buffer of %llu bytes, expected %llu as the others of the queue",
              static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(bytes_each_));
    }
    buffers_.push_back({base, block().buffers++ % kBufferFlags, 0, State::Free});
}

bool Queue::has_free() const {
    return std::any_of(buffers_.begin(), buffers_.end(), [](const Buffer &buffer) { return buffer.state == State::Free; });
}

uint8_t *Queue::allocate() {
    for (size_t tried = 0; tried < buffers_.size(); ++tried) {
        Buffer &buffer = buffers_[next_];
        next_ = (next_ + 1) % static_cast<uint32_t>(buffers_.size());
        if (buffer.state == State::Free) {
            wait_until_free(buffer.flag);
            buffer.state = State::Allocated;
            return buffer.base;
        }
    }
    fault(FaultKind::RuntimeFault, "AllocTensor",
          "all %zu buffers of the queue are in use%s: FreeTensor one first, or give the queue more buffers", buffers_.size(),
          queued_count_ > 0 ? ", and a tensor waits for DeQue" : "");
}

// The buffer that a tensor lies in. Buffers of no length share an address: the one in use is meant.
Queue::Buffer &Queue::find(const char *call, const uint8_t *base) {
    Buffer *found = nullptr;
    for (Buffer &buffer : buffers_) {
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
    const auto capacity = static_cast<uint32_t>(shape_.depth > 0 ? static_cast<size_t>(shape_.depth) : buffers_.size());
    if (queued_count_ >= capacity) {
        fault(FaultKind::RuntimeFault, "EnQue", "the queue is full (depth %u): DeQue first", capacity);
    }
    order_[queued_count_++] = static_cast<uint8_t>(&buffer - buffers_.data());
    buffer.state = State::Queued;
    if (producer != consumer) buffer.event_id = raise_event("EnQue", producer, consumer, buffer.flag);
}

uint8_t *Queue::dequeue(Pipe producer, Pipe consumer) {
    if (queued_count_ == 0) {
        fault(FaultKind::RuntimeFault, "DeQue", "the queue is empty, and this core would wait for ever: EnQue a tensor into it first");
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
    if (shape_.producer != shape_.consumer) announce_free(shape_.consumer, shape_.producer, buffer.flag);
}

void Queue::free_all_events() {
    for (const Buffer &buffer : buffers_) wait_until_free(buffer.flag);
}

namespace {

constexpr uint64_t kQueueBytes = 1024;      // what is kept for one at most, with room to grow

Queue *find_queue(uint32_t number) {
    std::vector<Queue> &queues = kernel_objects().queues;
    return number == 0 || number > queues.size() ? nullptr : &queues[number - 1];
}

Queue &queue_of(const char *call, uint32_t number) {
    Queue *queue = find_queue(number);
    if (queue == nullptr) fault(FaultKind::RuntimeFault, call, "the queue has no buffers: call TPipe::InitBuffer first");
    return *queue;
}

}  // namespace

namespace {

// The queue of that number, or a new one, without buffers; `number` becomes its own.
Queue &renewed_queue(uint32_t &number, const QueueShape &shape) {
    require_pipe();
    check_pipes("InitBuffer", shape.producer, shape.consumer);
    check_space(shape.space);
    std::vector<Queue> &queues = kernel_objects().queues;
    if (find_queue(number) == nullptr) {
        kernel_objects().take("InitBuffer", kQueueBytes);
        queues.emplace_back(shape);
        number = static_cast<uint32_t>(queues.size());
    }
    return queues[number - 1] = Queue(shape);
}

}  // namespace

uint32_t queue_init(uint32_t number, QueueShape shape, uint32_t buffers, uint32_t bytes_each) {
    Queue &queue = renewed_queue(number, shape);
    count_accesses(kInitAccesses + buffers * kInitBufferAccesses);
    queue.init(buffers, bytes_each);
    return number;
}

uint32_t queue_init_in_pool(uint32_t number, QueueShape shape, uint32_t buffers, uint32_t bytes_each, BufferPool pool) {
    if (shape.space != pool.space) {
        fault(FaultKind::RuntimeFault, "InitBuffer", "the queue's buffers belong into %s, but the pool lies in %s", memory_name(shape.space),
              memory_name(pool.space));
    }
    Queue &queue = renewed_queue(number, shape);
    queue.init(buffers, bytes_each, pool_next(pool, buffers, bytes_each));
    return number;
}

void queue_add_buffer(uint32_t queue, BufferPool pool, uint32_t bytes) {
    queue_of("InitBufHandle", queue).add(pool_next(pool, 1, bytes), bytes);
}

uint8_t *queue_allocate(uint32_t queue) {
    count_accesses(kAllocateAccesses);
    return queue_of("AllocTensor", queue).allocate();
}

void queue_enqueue(uint32_t queue, const uint8_t *buffer, Pipe producer, Pipe consumer) {
    check_pipes("EnQue", producer, consumer);
    count_accesses(kEnqueueAccesses);
    queue_of("EnQue", queue).enqueue(buffer, producer, consumer);
}

uint8_t *queue_dequeue(uint32_t queue, Pipe producer, Pipe consumer) {
    check_pipes("DeQue", producer, consumer);
    count_accesses(kDequeueAccesses);
    return queue_of("DeQue", queue).dequeue(producer, consumer);
}

void queue_release(uint32_t queue, const uint8_t *buffer) {
    count_accesses(kReleaseAccesses);
    queue_of("FreeTensor", queue).release(buffer);
}

void queue_free_all_events(uint32_t queue) {
    if (Queue *found = find_queue(queue)) found->free_all_events();
}

uint32_t queue_count(uint32_t queue) {
    const Queue *found = find_queue(queue);
    return found == nullptr ? 0 : found->queued_count();
}

bool queue_has_free(uint32_t queue) {
    const Queue *found = find_queue(queue);
    return found != nullptr && found->has_free();
}

}  // namespace asim
