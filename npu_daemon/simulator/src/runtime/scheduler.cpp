#include "asim/machine/scheduler.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "asim/machine/block.h"
#include "asim/machine/cross_core.h"
#include "asim/machine/data_stack.h"
#include "asim/machine/fault.h"
#include "asim/machine/buffer_flags.h"
#include "asim/machine/core.h"
#include "asim/machine/rerun.h"
#include "asim/trace/writer.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace asim {

namespace {

constexpr size_t kStackBytes = 1u << 20;  // of return addresses, and of what calls themselves keep

constexpr size_t kGuardBytes = 4u << 20;  // raw pointers into buffers that overflowed still end here

// Memory with inaccessible memory on both sides.
class GuardedMemory {
public:
    GuardedMemory(size_t bytes, uint8_t *wanted) {
        const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
        usable_ = (bytes + page - 1) / page * page;
        void *mapped = mmap(wanted, usable_ + 2 * kGuardBytes, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (mapped == MAP_FAILED || mprotect(static_cast<uint8_t *>(mapped) + kGuardBytes, usable_, PROT_READ | PROT_WRITE) != 0) {
            fault(FaultKind::RuntimeFault, "launch", "cannot allocate %zu bytes for a block", bytes);
        }
        base_ = static_cast<uint8_t *>(mapped);
    }
    ~GuardedMemory() { munmap(base_, usable_ + 2 * kGuardBytes); }
    GuardedMemory(const GuardedMemory &) = delete;

    uint8_t *data() const { return base_ + kGuardBytes; }
    size_t size() const { return usable_; }

private:
    size_t usable_;
    uint8_t *base_;
};

// Fibers lie at the same addresses in every run, so that nothing a kernel does can depend on them. From the start of a
// fiber's place: its stack of return addresses, its data stack, its unified buffer, and the memories of a cube core.
constexpr uint64_t kFiberBase = 1ull << 45;
constexpr uint64_t kFiberBytes = 256ull << 20;
constexpr uint64_t kDataStackPlace = 16ull << 20;
constexpr uint64_t kUbPlace = 32ull << 20;
constexpr uint64_t kMemoryPlace = 64ull << 20;
constexpr uint64_t kMemoryStep = 10ull << 20;

enum class FiberState : uint8_t { Ready, Waiting, Done };

struct Fiber {
    Fiber(uint32_t ub_bytes, uint8_t *where)
        : place(where), stack(kStackBytes, where), data_stack(kDataStackBytes, where + kDataStackPlace), ub(ub_bytes, where + kUbPlace) {}
    uint8_t *place;
    GuardedMemory stack;
    GuardedMemory data_stack;
    void *data_stack_top = nullptr;         // while the fiber is parked
    std::vector<uint64_t> executed = std::vector<uint64_t>(kCodePlaces / 64);
    GuardedMemory ub;
    std::unique_ptr<GuardedMemory> memories[kSpaceCount];   // once the fiber has been a cube core
    Block *block = nullptr;
    ucontext_t context{};
    FiberState state = FiberState::Ready;
    const std::function<bool()> *ready = nullptr;
};

ucontext_t g_scheduler;
Fiber *g_running = nullptr;
const std::function<void()> *g_entry = nullptr;
LaunchShape g_shape;
uint8_t g_outside_stack[kDataStackBytes];
uint64_t g_outside_executed[kCodePlaces / 64];
// What counts before and after the blocks.
Block g_outside = [] {
    Block block;
    block.stack = g_outside_stack;
    block.executed = g_outside_executed;
    return block;
}();
std::vector<Block> g_blocks;
size_t g_deadlocked = 0;    // blocks that wait, once none can go on
uint32_t g_sync_arrived[kCoreKinds + 1] = {};       // by kind, and of all kinds
uint32_t g_sync_passed[kCoreKinds + 1] = {};

// Leaves the running stack for that of `to`, until `from` is gone back to.
void switch_stacks(ucontext_t &from, ucontext_t &to) {
#if defined(__SANITIZE_ADDRESS__)
    void *left = nullptr;
    __sanitizer_start_switch_fiber(&left, to.uc_stack.ss_sp, to.uc_stack.ss_size);
    swapcontext(&from, &to);
    __sanitizer_finish_switch_fiber(left, nullptr, nullptr);
#else
    swapcontext(&from, &to);
#endif
}

void end_block() {
    check_flags_awaited();
    block().objects.reset();
    Record record{};
    record.op = Op::BlockEnd;
    emit(record, {});
    g_running->block->ended = true;
    g_running->state = FiberState::Done;
    switch_stacks(g_running->context, g_scheduler);
}

void fiber_main() {
#if defined(__SANITIZE_ADDRESS__)
    const void *stack = nullptr;
    __sanitizer_finish_switch_fiber(nullptr, &stack, &g_scheduler.uc_stack.ss_size);
    g_scheduler.uc_stack.ss_sp = const_cast<void *>(stack);
#endif
    (*g_entry)();
    end_block();
}

// The usable bytes end at the guard page, so that raw pointers past the end fault at once.
uint8_t *end_aligned(const GuardedMemory &memory, uint32_t bytes) {
    return memory.data() + (memory.size() - bytes) / kUbBlockBytes * kUbBlockBytes;
}

uint8_t *memory_base(const Fiber &fiber, uint32_t space) { return fiber.place + kMemoryPlace + space * kMemoryStep; }

void prepare_memories(Fiber &fiber) {
    for (uint32_t space = 0; space < kSpaceCount; ++space) {
        const uint32_t bytes = g_shape.memory_bytes[space];
        LocalMemory &memory = fiber.block->memories[space];
        if (bytes == 0) continue;
        memory = {memory_base(fiber, space) + kGuardBytes, bytes, 0};
        if (fiber.block->kind != CoreKind::Cube) continue;
        if (!fiber.memories[space]) fiber.memories[space] = std::make_unique<GuardedMemory>(bytes, memory_base(fiber, space));
        std::memset(fiber.memories[space]->data(), rerun().poison, fiber.memories[space]->size());
        memory.base = end_aligned(*fiber.memories[space], bytes);
    }
}

void prepare(Fiber &fiber, Block &block) {
    std::memset(fiber.ub.data(), rerun().poison, fiber.ub.size());
    std::memset(fiber.data_stack.data(), rerun().poison, kDataStackBytes);
    fiber.data_stack_top = fiber.data_stack.data() + kDataStackBytes;
    fiber.block = &block;
    std::fill(fiber.executed.begin(), fiber.executed.end(), 0);
    block.executed = fiber.executed.data();
    block.stack = fiber.data_stack.data();
    block.ub = end_aligned(fiber.ub, g_shape.ub_bytes);
    block.ub_bytes = g_shape.ub_bytes;
    prepare_memories(fiber);
    fiber.state = FiberState::Ready;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, fiber_main, 0);
}

void resume(Fiber &fiber) {
    g_running = &fiber;
    g_block = fiber.block;
    switch_trace(fiber.block->trace_index);
    std::swap(fiber.data_stack_top, __safestack_unsafe_stack_ptr);
    switch_stacks(g_scheduler, fiber.context);
    std::swap(fiber.data_stack_top, __safestack_unsafe_stack_ptr);
    g_block = &g_outside;
}

Block describe_block(uint32_t trace_index) {
    const Composition &composition = g_shape.composition;
    const uint32_t position = trace_index % composition.cores();
    Block block;
    block.kind = position < composition.cubes ? CoreKind::Cube : CoreKind::Vector;
    block.group = trace_index / composition.cores();
    block.sub_index = block.kind == CoreKind::Cube ? position : position - composition.cubes;
    block.sub_count = block.kind == CoreKind::Cube ? composition.cubes : composition.vectors;
    block.index = block.group * block.sub_count + block.sub_index;
    block.count = g_shape.group_count;
    block.trace_index = trace_index;
    return block;
}

using Fibers = std::vector<std::unique_ptr<Fiber>>;

// Fibers under way, and those of ended blocks that the next ones take over.
class Scheduler {
public:
    void run() {
        for (uint32_t group = 0; group < g_shape.group_count; ++group) start_group(group);
        while (!waiting_.empty()) {
            if (!step(0)) resume_in_deadlock(*waiting_.front());
        }
    }

private:
    // A group goes on until it needs others: blocks that need nobody never pile up.
    void start_group(uint32_t group) {
        const uint32_t cores = g_shape.composition.cores();
        const size_t before = waiting_.size();
        for (uint32_t i = 0; i < cores; ++i) {
            std::unique_ptr<Fiber> fiber = take();
            prepare(*fiber, g_blocks[group * cores + i]);
            resume(*fiber);
            keep(std::move(fiber), waiting_);
        }
        while (step(before)) {}
    }

    // Resumes each waiting fiber from `first` on that can go on; returns whether any could.
    bool step(size_t first) {
        bool progress = false;
        Fibers still(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(waiting_.begin() + first));
        for (size_t i = first; i < waiting_.size(); ++i) {
            std::unique_ptr<Fiber> fiber = std::move(waiting_[i]);
            if ((*fiber->ready)()) {
                progress = true;
                resume(*fiber);
            }
            keep(std::move(fiber), still);
        }
        waiting_ = std::move(still);
        return progress;
    }

    void keep(std::unique_ptr<Fiber> fiber, Fibers &alive) {
        (fiber->state == FiberState::Done ? spare_ : alive).push_back(std::move(fiber));
    }

    std::unique_ptr<Fiber> take() {
        if (spare_.empty()) {
            uint8_t *place = reinterpret_cast<uint8_t *>(kFiberBase + made_++ * kFiberBytes);
            return std::make_unique<Fiber>(g_shape.ub_bytes, place);
        }
        std::unique_ptr<Fiber> fiber = std::move(spare_.back());
        spare_.pop_back();
        return fiber;
    }

    // The fiber reports by itself where it waits.
    void resume_in_deadlock(Fiber &fiber) {
        g_deadlocked = waiting_.size();
        resume(fiber);
    }

    Fibers waiting_;
    Fibers spare_;
    uint64_t made_ = 0;
};

uint32_t cores_of(uint32_t kind) {
    const Composition &composition = g_shape.composition;
    const uint32_t in_group = kind == kCoreKinds ? composition.cores()
                              : static_cast<CoreKind>(kind) == CoreKind::Cube ? composition.cubes : composition.vectors;
    return g_shape.group_count * in_group;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"), tls_model("initial-exec"))) thread_local void *__safestack_unsafe_stack_ptr =
    g_outside_stack + kDataStackBytes;
}

void *push_on_data_stack(const void *values, uint64_t bytes) {
    constexpr uint64_t kAlignment = 16;
    auto *top = static_cast<uint8_t *>(__safestack_unsafe_stack_ptr) - (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (top < block().stack) fault(FaultKind::RuntimeFault, "launch", "the arguments of the kernel take more than its stack");
    std::memcpy(top, values, bytes);
    __safestack_unsafe_stack_ptr = top;
    return top;
}

Block *g_block = &g_outside;
uint64_t g_tiling_key = 0;

Block *launch_blocks() { return g_blocks.data(); }
const LaunchShape &launch_shape() { return g_shape; }

void require_residency(const char *call) {
    if (g_shape.group_count <= g_shape.resident_groups) return;
    fault(FaultKind::RuntimeFault, call, "block dim %u exceeds the %u cores: blocks of a later wave never arrive, the launch would hang",
          g_shape.group_count, g_shape.resident_groups);
}

void wait_until(const char *call, const char *what, const std::function<bool()> &ready) {
    while (!ready()) {
        g_running->ready = &ready;
        g_running->state = FiberState::Waiting;
        switch_stacks(g_running->context, g_scheduler);
        if (g_deadlocked > 0) {
            fault(FaultKind::RuntimeFault, call, "waits for %s: %zu of %zu blocks wait, the others ended; the launch would hang",
                  what, g_deadlocked, g_blocks.size());
        }
    }
}

void sync_all_blocks(bool all_kinds) {
    require_residency("SyncAll");
    check_sync_all_flags(all_kinds);
    Record record{};
    record.op = Op::SyncAll;
    record.flag_id = all_kinds ? kSyncAllKinds : 0;
    emit(record, {});
    const uint32_t kind = all_kinds ? kCoreKinds : static_cast<uint32_t>(block().kind);
    const uint32_t meeting = g_sync_passed[kind];
    if (++g_sync_arrived[kind] == cores_of(kind)) {
        g_sync_arrived[kind] = 0;
        ++g_sync_passed[kind];
    }
    wait_until("SyncAll", "the others to arrive", [&] { return g_sync_passed[kind] != meeting; });
}

Block *group_block(CoreKind kind, uint32_t sub_index) {
    const Composition &composition = g_shape.composition;
    const bool cube = kind == CoreKind::Cube;
    if (sub_index >= (cube ? composition.cubes : composition.vectors)) return nullptr;
    return &g_blocks[block().group * composition.cores() + (cube ? 0 : composition.cubes) + sub_index];
}

void run_as(Block &other, const std::function<void()> &work) {
    Block &self = block();
    g_block = &other;
    switch_trace(other.trace_index);
    work();
    g_block = &self;
    switch_trace(self.trace_index);
}

void wait_for_group_end() {
    Block &self = block();
    const Composition &composition = g_shape.composition;
    const Block *vectors = &g_blocks[self.group * composition.cores() + composition.cubes];
    wait_until("the cube core's service", "its vector cores to end",
               [&] { return std::all_of(vectors, vectors + composition.vectors, [](const Block &block) { return block.ended; }); });
}

void run_blocks(const LaunchShape &shape, const std::function<void()> &entry) {
    g_shape = shape;
    g_entry = &entry;
    g_blocks.clear();
    const uint32_t count = shape.group_count * shape.composition.cores();
    for (uint32_t i = 0; i < count; ++i) g_blocks.push_back(describe_block(i));
    Scheduler().run();
    check_cross_core_flags_awaited();
}

}  // namespace asim
