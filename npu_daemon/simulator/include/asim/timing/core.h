// One vector or cube core: a scalar unit that issues in program order into pipes that work in order and in parallel.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "asim/timing/bank_conflict.h"
#include "asim/timing/chip.h"
#include "asim/timing/coverage.h"
#include "asim/timing/cube_cost.h"
#include "asim/timing/data_cache.h"
#include "asim/timing/memory.h"
#include "asim/timing/ring.h"
#include "asim/timing/scalar_order.h"
#include "asim/timing/timeline.h"
#include "asim/timing/trace_reader.h"
#include "asim/timing/unfinished.h"
#include "asim/timing/vector_order.h"

namespace asim {

constexpr size_t kMaxClockReads = 64;

// What the repeats of a vector instruction took, and what of that was lost to bank conflicts of either kind.
struct OfInstruction {
    double repeat_cycles = 0;
    double conflict_cycles = 0;
};

// What the scalar unit of a core worked on, in cycles; kept only where a timeline is drawn. What is left of its busy cycles
// is the start of its blocks.
struct ScalarWork {
    uint64_t fetched_instructions = 0;  // of the kernel's own code, that came for the first time
    double fetch_cycles = 0;            // what that took
    double issue_cycles = 0;            // of records
    double code_cycles = 0;             // of the kernel's own code: addresses, loops, conditions, its stack
    double queue_cycles = 0;            // what the library keeps of queues and events
    double access_cycles = 0;           // of the unified buffer and of global memory
    double order_cycles = 0;            // flags and barriers that the compiler inserts
};

// What one core did: cycles each pipe was busy, instructions and bytes.
struct CoreCounters {
    double total_cycles = 0;
    std::array<double, kPipeCount> busy_cycles{};
    std::array<uint64_t, kPipeCount> instructions{};
    std::array<double, kPipeCount> wait_cycles{};   // of flags and of instructions on other pipes
    double bank_group_conflict_cycles = 0;
    double bank_conflict_cycles = 0;
    std::array<OfInstruction, static_cast<size_t>(Op::Count)> vector_cycles{};  // by instruction
    alignas(64) uint64_t read_bytes = 0;    // from global memory
    CacheTraffic read_traffic;              // by what the cache did
    uint64_t written_bytes = 0;             // to global memory
    CacheTraffic write_traffic;
    double main_written_bytes = 0;      // to HBM: evicted lines, and writes past the cache
    ScalarWork scalar_work;
    std::vector<double> clock_reads;    // cycle of each read of the system counter, up to kMaxClockReads
};

// A flag that a core set for others: what the engine carries to them.
struct RaisedFlag {
    CrossCoreMode mode;
    uint32_t flag;
    uint32_t position;              // of the receiver in the group, in mode Direct
    double time;
};

// What the cores of a launch have in common.
struct Shared {
    const Chip &chip;
    Memory &memory;
    BankConflicts &bank_conflicts;
    Coverage &coverage;
    Timeline &timeline;
    uint32_t cores;     // of the launch that run at a time
};

class Core {
public:
    Core(const Shared &shared, uint32_t id)
        : shared_(shared), chip_(shared.chip), id_(id), draws_(shared.timeline.on()),
          queue_depth_(static_cast<size_t>(shared.chip.queue_depth)) {
        uint32_t places = 1;
        while (places < queue_depth_) places *= 2;
        for (PipeState &state : pipes_) {
            state.places = std::make_unique<Queued[]>(places);
            state.last_place = places - 1;
        }
    }

    // Starts a block: `entry_cycles` of scalar work after `wait_cycles` for its code.
    void start_block(const Cursor &cursor, double now, double wait_cycles, double entry_cycles);

    // Does all that can be done at `now`; returns the next time at which it has to be called again
    // without a copy of its own having ended, or kNever.
    double advance(double now);

    void copy_finished(Pipe pipe, double now);
    void leave_sync_all(double time) { scalar_time_ = time; in_sync_all_ = false; }

    void raise_cross_core(uint32_t flag, double time) { cross_core_flags_[flag].push(time); }
    std::vector<RaisedFlag> &raised_for_others() { return raised_for_others_; }

    bool in_sync_all() const { return in_sync_all_; }
    bool syncs_all_kinds() const { return syncs_all_kinds_; }
    double scalar_time() const { return scalar_time_; }
    bool block_done() const { return block_done_; }
    bool active() const { return active_; }
    CoreCounters counters() const;

private:
    static constexpr size_t kHostLineBytes = 64;    // what is used together shares lines of the host's cache
    enum class Kind : uint8_t { Copy, Work, Set, Wait, Barrier, CrossCoreSet };
    struct Queued {                 // an issued record; what its kind needs besides lies in a queue of the pipe's own
        double time = 0;            // it was issued; once it has started, that, until its place is used again
        uint16_t flag = 0;          // of Set and Wait, its place in flags_
        Kind kind = Kind::Work;
        Pipe target = Pipe::S;      // of Set
        uint8_t follows = 0;        // pipes on which it follows an instruction, one bit each
    };
    struct alignas(kHostLineBytes) FlagTimes : Ring<double, 4> {};
    struct Work {                   // an instruction that is no copy, or a barrier, for which the pipe stands still when it is empty
        InstructionTime time;
        uint64_t bytes = 0;
        Op op = Op::Count;
        bool tile_by_tile = false;  // it gives its results so
        bool after_own = false;     // it waits until its own pipe has finished what was issued before
    };
    struct alignas(kHostLineBytes) PipeState {
        double free_at = 0;         // the next instruction may start
        double drained_at = 0;      // everything started so far has finished
        double head_start = 0;      // of a head that is `timed`
        uint64_t issued = 0;        // to it, in this block; those that have not started are its queue
        uint64_t started = 0;
        std::unique_ptr<Queued[]> places;   // of the queue and what it held before: a power of two
        uint32_t last_place = 0;
        bool copying = false;
        bool timed = false;         // the head starts at a time that lies ahead
        Op copy_op = Op::Count;     // where a timeline is drawn
        double copy_until = 0;      // and until then at least
        double has_pipe_from = 0;   // the latest instruction
        double copy_latency = 0;
        double busy_cycles = 0;
        double wait_cycles = 0;
        uint64_t instructions = 0;
        Ring<GlobalCopy> copies;    // of the queue
        uint64_t copy_bytes = 0;    // where a timeline is drawn
        Ring<Work> works;           // of the queue
        Ring<double> unit_cycles;   // likewise of instructions on pipe FIX, see unit_flag_cycles
        Ring<RaisedFlag> raised;    // likewise flags for other cores

        uint64_t waiting() const { return issued - started; }
        Queued &place(uint64_t instruction) { return places[instruction & last_place]; }
    };
    static uint32_t bit(Pipe which) { return 1u << static_cast<uint32_t>(which); }
    PipeState &pipe(Pipe which) { return pipes_[static_cast<size_t>(which)]; }

    // The scalar unit (core.cpp).
    void do_all(double now);
    bool can_issue();
    bool issue_some();
    bool issue();
    void take_record();
    void order_vectors(const Entry &entry);
    bool issue_scalar(const Entry &entry);
    bool issue_access(const Entry &entry);
    void clean_cache(const Entry &entry);
    bool issue_to_pipe(const Entry &entry, Pipe pipe);
    void fill_in(PipeState &state, Queued &queued, const Entry &entry, Pipe which);
    void fill_in_instruction(PipeState &state, Queued &queued, const Entry &entry, Pipe which);
    bool drain_all(double extra_cycles);
    void end_block();
    void take_flag(const Entry &entry);
    double scalar_cycles(const ScalarCounts &counts) const;
    double fetch_cycles(uint32_t instructions);
    void note_work(const ScalarCounts &counts);
    InstructionTime vector_time(const Entry &entry);
    // Work of the scalar unit itself.
    void work(double cycles) {
        if (draws_) shared_.timeline.add_scalar(id_, scalar_time_, scalar_time_ + cycles);
        scalar_time_ += cycles;
        scalar_cycles_ += cycles;
    }
    void work(double cycles, double ScalarWork::*kind) {
        if (draws_) counters_.scalar_work.*kind += cycles;
        work(cycles);
    }

    // The other pipes (core_pipes.cpp).
    void look_at(Pipe which) { to_look_at_ |= bit(which); }
    void run_pipes(double now);
    void run_pipe(Pipe pipe, double now);
    double first_start() const;
    bool start_head(PipeState &state, Pipe which, double now);
    void set_flag(PipeState &state, Queued &head);
    bool pass(PipeState &state, Queued &head);
    double start_of(const PipeState &state, Pipe which, const Queued &head, double unit_cycles);
    bool start_instruction(PipeState &state, Pipe which, Queued &head, double now);
    void start_work(PipeState &state, Pipe which, double start);
    void start_copy(PipeState &state, Pipe which, double start);
    void finish(Pipe finished, double start, double end, bool tile_by_tile);
    void busy(Pipe pipe, Op op, double start, double end, uint64_t bytes);
    void count_traffic(const GlobalCopy &copy, const CacheTraffic &traffic);

    Shared shared_;
    const Chip &chip_;
    uint32_t id_;
    bool draws_;                        // a timeline
    size_t queue_depth_;
    double scalar_time_ = 0;
    double scalar_cycles_ = 0;
    bool has_pending_ = false;          // the current record has not been issued
    bool in_sync_all_ = false;
    bool syncs_all_kinds_ = false;
    bool block_done_ = false;
    bool active_ = false;
    Pipe full_ = Pipe::S;               // whose queue had no place for the current record; S, which has none: none
    uint32_t to_look_at_ = 0;           // pipes whose head may be able to start, one bit each
    uint32_t timed_heads_ = 0;          // pipes whose head, a copy, starts at a time that lies ahead
    uint32_t written_ = 0;              // pipes whose copy, a write, is over at the time it started, one bit each
    uint32_t awaiting_heads_ = 0;       // pipes whose head follows an instruction without an end
    double next_start_ = kNever;        // of the timed heads, when the core was last left
    double held_up_cycles_ = 0;         // of the current record
    bool after_own_ = false;            // the current record waits for results of its own pipe
    std::optional<Records> records_;
    std::array<PipeState, kPipeCount> pipes_;
    std::vector<FlagTimes> flags_;      // of the block, by number: when they were raised
    Unfinished unfinished_;
    VectorOrder vector_order_;
    ScalarOrder scalar_order_;
    bool orders_scalars_ = false;           // where the block has accesses that scalar_order_ is about
    uint64_t fetched_ = 0;                  // instructions of the block that came for the first time
    bool has_code_ = false;                 // in its instruction cache, from an earlier block
    double block_start_ = 0;
    DataCache data_cache_;
    CoreCounters counters_;             // of all but pipes
    std::array<Ring<double>, kCrossCoreFlags> cross_core_flags_;
    std::vector<RaisedFlag> raised_for_others_;
};

}  // namespace asim
