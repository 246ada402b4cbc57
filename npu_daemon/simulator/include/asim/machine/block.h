// State of one running block (one vector or cube core): its memories, registers and counters.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "asim/machine/cube_registers.h"
#include "asim/machine/units.h"
#include "asim/machine/vector_registers.h"
#include "asim/trace/record.h"

namespace asim {

constexpr uint32_t kEventIds = 8;           // per pipe pair (docs/hardware.md section 2)
constexpr uint32_t kDataStackBytes = 128 * 1024;     // a core of the device has 32 KiB for data and return addresses by default
constexpr uint32_t kBufferFlagBase = 64;    // flag ids of queue buffers start here

// Calls of asim_count lie further apart than this, and code beyond the places shares bits.
constexpr uint32_t kCodePlaceBytes = 8;
constexpr uint32_t kCodePlaces = 1u << 16;

// How many lines of scalar accesses are told apart: some of each remainder, as streams of tiles lie at even distances.
constexpr uint32_t kScalarSets = 4;
constexpr uint32_t kScalarWays = 4;

// A line that scalar code has touched since the last other instruction, and the record that stands for it.
struct ScalarLine {
    uint64_t key = 0;
    uint64_t place = 0;                     // of its operand, see trace/writer.h
};

enum class CoreKind : uint8_t { Vector, Cube };
constexpr uint32_t kCoreKinds = 2;

// One of the memories of a cube core. A vector core has the addresses, so that queues can be declared, and nothing there.
struct LocalMemory {
    uint8_t *base = nullptr;
    uint32_t bytes = 0;
    uint64_t used_bytes = 0;                // handed out by InitBuffer
};

// A queue's buffer that was freed and not yet allocated again.
struct FreedBuffer {
    Pipe consumer, producer;
    uint32_t flag;
    uint32_t event_id;
};
constexpr uint32_t kMaxBuffers = 64;        // of one kernel (docs/hardware.md section 2)

// Bytes of the unified buffer, and which accesses to them end the run.
struct WatchedMemory {
    uint64_t begin = 0, end = 0;
    uint32_t kinds = 0;
};
constexpr uint32_t kWatches = 4;

class KernelObjects;

struct Block {
    uint64_t scalar_counts[kScalarClassCount] = {};     // since the last record
    bool after_load = false;                // whether a load of the unified buffer came last, beside work on addresses
    uint64_t *executed = nullptr;           // places in the kernel's code that the block has been at, one bit for each; see asim_count
    uint8_t *stack = nullptr;               // data stack of the kernel's own code, kDataStackBytes from here on
    CoreKind kind = CoreKind::Vector;
    uint32_t index = 0;                     // among the cores of its kind: GetBlockIdx
    uint32_t count = 1;                     // groups of the launch, its block dim: GetBlockNum
    uint32_t group = 0;                     // logical AI core
    uint32_t sub_index = 0;                 // among the cores of its kind in the group
    uint32_t sub_count = 1;
    uint32_t trace_index = 0;               // which trace of the launch
    uint8_t *ub = nullptr;                  // on a cube core scratch that nobody sees: nothing loads what vector calls leave there
    uint32_t ub_bytes = 0;
    uint64_t ub_used_bytes = 0;             // handed out by InitBuffer; more than ub_bytes is an overflow
    std::vector<uint16_t> buffer_ends;      // for each 32 B of UB, in 32 B: where the buffer ends that it belongs to, or 0
    LocalMemory memories[kSpaceCount];      // of a cube core; those of Ub and Gm are empty
    CubeRegisters cube;
    VectorRegisters vector;
    std::shared_ptr<KernelObjects> objects;     // once the kernel has some; see kernel_objects.h
    uint32_t buffers = 0;
    FreedBuffer freed[kMaxBuffers];
    uint32_t freed_count = 0;
    void *pipe = nullptr;                   // the kernel's TPipe
    uint8_t *spill = nullptr;               // its SPM buffer
    uint32_t spill_bytes = 0;
    uint64_t mask[2] = {~0ull, ~0ull};      // vector mask register
    bool counter_mode = false;              // mask holds an element count
    uint64_t compare_mask[2] = {0, 0};      // CMPMASK register
    AtomicMode atomic = AtomicMode::None;
    uint8_t atomic_dtype = 0;               // of SetStoreAtomicConfig
    WatchedMemory watched[kWatches];        // of CheckLocalMemoryIA
    bool watches = false;                   // any of them
    uint8_t event_ids[kPipeCount][kPipeCount] = {};     // bit set = allocated
    uint8_t flags_raised[kPipeCount][kPipeCount] = {};  // bit set = set and not yet waited for
    uint8_t buffer_events[kPipeCount][kPipeCount] = {}; // those of them that queues have set for their buffers
    uint8_t cross_core_sets[kCrossCoreFlags] = {};      // set here, while other cores of the meeting have yet to
    uint8_t cross_core_flags[kCrossCoreFlags] = {};     // counters that waits of this core take from
    ScalarLine scalar_lines[kScalarSets][kScalarWays];
    int64_t clock_reads = 0;
    bool tiling_key_asked = false;          // some TILING_KEY_IS was evaluated
    bool tiling_key_matched = false;        // and one of them was true
    bool ended = false;
    uint64_t records = 0;                   // emitted so far
    uint32_t library_calls = 0;             // composite calls under way, which contain the barriers they need
    bool call_begun = false;                // they have issued an instruction: the next ones have a barrier before them
    uint32_t values_only = 0;               // library calls under way that compute what they will issue other instructions for
    const char *last_call = "kernel entry";
};

extern Block *g_block;
extern uint64_t g_tiling_key;
extern uint64_t g_ub_taken_bytes;   // the most that InitBuffer handed out at once on a vector core of this launch

inline Block &block() { return *g_block; }

inline bool on_cube_core() { return block().kind == CoreKind::Cube; }

// Notes work of the scalar unit in the running block.
inline void count_scalar(ScalarClass what, uint64_t count) { block().scalar_counts[static_cast<uint32_t>(what)] += count; }

inline VectorRegisters &vector_registers() { return block().vector; }

}  // namespace asim
