#include "asim/machine/scheduler.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <vector>

#include "asim/machine/block.h"
#include "asim/machine/fault.h"
#include "asim/trace/writer.h"

namespace asim {

namespace {

constexpr size_t kStackBytes = 1u << 20;
constexpr uint8_t kPoison = 0xff;  // a NaN in every floating-point type

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

// Fibers lie at the same addresses in every run, so that nothing a kernel does can depend on them.
constexpr uint64_t kFiberBase = 1ull << 45;
constexpr uint64_t kFiberBytes = 64ull << 20;

enum class FiberState : uint8_t { Ready, Waiting, Done };

struct Fiber {
    Fiber(uint32_t ub_bytes, uint8_t *place) : stack(kStackBytes, place), ub(ub_bytes, place + kFiberBytes / 2) {}
    GuardedMemory stack;
    GuardedMemory ub;
    Block block;
    ucontext_t context{};
    FiberState state = FiberState::Ready;
};

ucontext_t g_scheduler;
Fiber *g_running = nullptr;
const std::function<void()> *g_entry = nullptr;
LaunchShape g_shape;
Block g_outside;  // what counts before and after the blocks

void end_block() {
    Record record{};
    record.op = Op::BlockEnd;
    emit(record, {});
    g_running->state = FiberState::Done;
    swapcontext(&g_running->context, &g_scheduler);
}

void fiber_main() {
    (*g_entry)();
    end_block();
}

void prepare(Fiber &fiber, uint32_t index) {
    std::memset(fiber.ub.data(), kPoison, fiber.ub.size());
    fiber.block = Block{};
    fiber.block.index = index;
    fiber.block.count = g_shape.block_count;
    // The usable bytes end at the guard page, so that raw pointers past the end fault at once.
    fiber.block.ub = fiber.ub.data() + (fiber.ub.size() - g_shape.ub_bytes) / kUbBlockBytes * kUbBlockBytes;
    fiber.block.ub_bytes = g_shape.ub_bytes;
    fiber.state = FiberState::Ready;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, fiber_main, 0);
}

void resume(Fiber &fiber) {
    g_running = &fiber;
    g_block = &fiber.block;
    switch_trace(fiber.block.index);
    swapcontext(&g_scheduler, &fiber.context);
    g_block = &g_outside;
}

uint8_t *place_of(size_t fiber) { return reinterpret_cast<uint8_t *>(kFiberBase + fiber * kFiberBytes); }

// Starts every block; those that end give their fiber to the next one.
std::vector<std::unique_ptr<Fiber>> start_all() {
    std::vector<std::unique_ptr<Fiber>> waiting;
    std::unique_ptr<Fiber> spare;
    for (uint32_t index = 0; index < g_shape.block_count; ++index) {
        std::unique_ptr<Fiber> fiber = spare ? std::move(spare) : std::make_unique<Fiber>(g_shape.ub_bytes, place_of(waiting.size()));
        prepare(*fiber, index);
        resume(*fiber);
        if (fiber->state == FiberState::Done) {
            spare = std::move(fiber);
        } else {
            waiting.push_back(std::move(fiber));
        }
    }
    return waiting;
}

}  // namespace

Block *g_block = &g_outside;
uint64_t g_tiling_key = 0;

void sync_all_blocks() {
    if (g_shape.block_count > g_shape.core_count) {
        fault(FaultKind::RuntimeFault, "SyncAll",
              "block dim %u exceeds the %u cores: blocks of a later wave never arrive, the launch would hang",
              g_shape.block_count, g_shape.core_count);
    }
    Record record{};
    record.op = Op::SyncAll;
    emit(record, {});
    g_running->state = FiberState::Waiting;
    swapcontext(&g_running->context, &g_scheduler);
}

void cross_core_set(uint32_t flag) {
    if (flag >= kCrossCoreFlags) {
        fault(FaultKind::RuntimeFault, "CrossCoreSetFlag", "flag %u does not exist: there are flags 0 to %u", flag,
              kCrossCoreFlags - 1);
    }
    ++block().cross_core_sets[flag];
}

void cross_core_wait(uint32_t flag) {
    if (flag >= kCrossCoreFlags || block().cross_core_sets[flag] == 0) {
        fault(FaultKind::RuntimeFault, "CrossCoreWaitFlag",
              "waits for flag %u, which this core has not set: the launch would hang", flag);
    }
    --block().cross_core_sets[flag];
    sync_all_blocks();
}

void run_blocks(const LaunchShape &shape, const std::function<void()> &entry) {
    g_shape = shape;
    g_entry = &entry;
    std::vector<std::unique_ptr<Fiber>> waiting = start_all();
    while (!waiting.empty()) {
        if (waiting.size() != shape.block_count) {
            g_block = &waiting.front()->block;
            fault(FaultKind::RuntimeFault, "SyncAll", "%zu of %u blocks wait, the others ended without arriving",
                  waiting.size(), shape.block_count);
        }
        for (auto &fiber : waiting) {
            resume(*fiber);
        }
        std::vector<std::unique_ptr<Fiber>> still;
        for (auto &fiber : waiting) {
            if (fiber->state != FiberState::Done) still.push_back(std::move(fiber));
        }
        waiting = std::move(still);
    }
}

}  // namespace asim
