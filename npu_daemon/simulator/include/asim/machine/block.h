// State of one running block (one AI vector core): its unified buffer, registers and counters.
#pragma once
#include <cstdint>

#include "asim/trace/record.h"

namespace asim {

constexpr uint32_t kUbBlockBytes = 32;      // data block: alignment unit of the unified buffer
constexpr uint32_t kRepeatBytes = 256;      // one vector repeat
constexpr uint32_t kEventIds = 8;           // per pipe pair (facts/npu_2201.md section 2)
constexpr uint32_t kBufferFlagBase = 64;    // flag ids of queue buffers start here

constexpr uint32_t kCrossCoreFlags = 16;    // ids of CrossCoreSetFlag

constexpr uint32_t kScalarLines = 16;       // how many lines of scalar accesses are told apart

enum class AtomicMode : uint8_t { None, Add, Max, Min };

struct Block {
    uint32_t index = 0;
    uint32_t count = 1;
    uint8_t *ub = nullptr;
    uint32_t ub_bytes = 0;
    uint64_t ub_used_bytes = 0;             // handed out by InitBuffer; more than ub_bytes is an overflow
    uint32_t buffers = 0;
    void *pipe = nullptr;                   // the kernel's TPipe
    uint64_t mask[2] = {~0ull, ~0ull};      // vector mask register
    bool counter_mode = false;              // mask holds an element count
    uint64_t compare_mask[2] = {0, 0};      // CMPMASK register
    AtomicMode atomic = AtomicMode::None;
    uint8_t atomic_dtype = 0;
    uint8_t event_ids[kPipeCount][kPipeCount] = {};     // bit set = allocated
    uint8_t flags_raised[kPipeCount][kPipeCount] = {};  // bit set = set and not yet waited for
    uint8_t cross_core_sets[kCrossCoreFlags] = {};      // flags of this core set and not yet waited for
    uint64_t scalar_blocks = 0;
    uint64_t scalar_accesses = 0;
    uint64_t scalar_lines[kScalarLines] = {};   // lines touched by scalar code since the last other instruction
    int64_t clock_reads = 0;
    bool tiling_key_asked = false;          // some TILING_KEY_IS was evaluated
    bool tiling_key_matched = false;        // and one of them was true
    const char *last_call = "kernel entry";
};

extern Block *g_block;
extern uint64_t g_tiling_key;

inline Block &block() { return *g_block; }

// Hands control to the other blocks until all have arrived here.
void sync_all_blocks();

// Flags between cores, mode 0: a wait ends when every core has set the flag. Each core sets it before it waits, so the
// wait is a meeting of all blocks, and priced as one.
void cross_core_set(uint32_t flag);
void cross_core_wait(uint32_t flag);

}  // namespace asim
