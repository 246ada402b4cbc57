#include "asim/timing/core.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "asim/timing/cube_cost.h"

namespace asim {

namespace {

constexpr uint64_t kDataCacheLineBytes = 64;
constexpr double kHandOversOfBarrier = 2;    // flags from one pipe to another, see barrier_cycles
constexpr double kInstructionsOfHandOver = 2;   // one sets the flag, one awaits it

Pipe pipe_of(uint8_t code) { return static_cast<Pipe>(code); }

bool is_copy(Op op) { return reads_gm(op) || writes_gm(op); }

}  // namespace

void Core::start_block(const Cursor &cursor, double now, double wait_cycles, double entry_cycles) {
    records_.emplace(cursor);
    pending_.reset();
    block_start_ = now;
    scalar_time_ = now + wait_cycles;
    work(entry_cycles);
    for (PipeState &state : pipes_) {
        state.free_at = state.drained_at = scalar_time_;
        state.started_at.clear();
    }
    flags_.clear();
    vector_order_.clear();
    scalar_order_.clear();
    for (Fifo<double> &raised : cross_core_flags_) raised.clear();
    cached_line_ = ~0ull;
    block_done_ = false;
    active_ = true;
}

double Core::vector_cycles(const Entry &entry) {
    const Record &record = entry.record;
    if (record.repeats == 0) return chip_.vector_start_cycles;
    const double lanes = 256.0 / std::max<uint32_t>(record.dtype_bytes, 1);
    const double throughput = lanes / chip_.elements_per_cycle(info(record.op).cost, record.dtype_bytes);
    const BankCycles bank = bank_conflicts_.cycles_per_repeat(entry);
    counters_.bank_group_conflict_cycles += record.repeats * std::max(0.0, bank.group_cycles - throughput);
    counters_.bank_conflict_cycles += record.repeats * std::max(0.0, bank.cycles - std::max(throughput, bank.group_cycles));
    return chip_.vector_start_cycles + record.repeats * std::max(throughput, bank.cycles);
}

uint32_t Core::flag(const Record &record) {
    return flags_.find_or_insert(uint32_t{record.source_pipe} << 24 | uint32_t{record.target_pipe} << 16 | record.flag_id);
}

// Notes whether the pipe has an instruction that nothing before it keeps from starting; the scalar unit starts its own.
void Core::note_head(Pipe which) {
    if (which == Pipe::S) return;
    const uint32_t bit = 1u << static_cast<uint32_t>(which);
    const PipeState &state = pipe(which);
    idle_heads_ = state.queue.empty() || state.copying ? idle_heads_ & ~bit : idle_heads_ | bit;
}

bool Core::issue_to_pipe(const Entry &entry, Pipe which) {
    PipeState &state = pipe(which);
    if (state.queue.size() >= queue_depth_) return false;
    // A place is free once the instruction `depth` before this one has started.
    const size_t places = queue_depth_ - state.queue.size();
    if (state.started_at.size() >= places) {
        scalar_time_ = std::max(scalar_time_, state.started_at[state.started_at.size() - places]);
    }
    Queued &queued = state.queue.push(queue_depth_);
    queued.entry = entry;
    queued.issued = scalar_time_;
    queued.waiting.clear();
    queued.held_up_cycles = held_up_cycles_;
    if (info(entry.record.op).pipe != Pipe::S) {
        unfinished_.forget(scalar_time_);
        unfinished_.find_conflicts(entry, which, scalar_time_, queued.waiting);
        unfinished_.hold(queued.waiting);
        queued.slot = unfinished_.add(entry, which);
    } else if (entry.record.op == Op::SetFlag || entry.record.op == Op::WaitFlag) {
        queued.flag = flag(entry.record);
    }
    note_head(which);
    return true;
}

// Waits until every pipe has finished what was issued to it.
bool Core::drain_all(double extra_cycles) {
    double drained = scalar_time_;
    for (const PipeState &state : pipes_) {
        if (!state.queue.empty() || state.copying) return false;
        drained = std::max(drained, state.drained_at);
    }
    scalar_time_ = drained + extra_cycles;
    return true;
}

// Work of the scalar unit itself.
void Core::work(double cycles) {
    if (timeline_.on()) timeline_.add_scalar(id_, scalar_time_, scalar_time_ + cycles);
    scalar_time_ += cycles;
    counters_.busy_cycles[0] += cycles;
}

bool Core::issue_access(const Entry &entry, double now) {
    // Whatever is issued later starts later: a scalar access need not be remembered.
    unfinished_.forget(now);
    scalar_waiting_.clear();
    unfinished_.find_conflicts(entry, Pipe::S, now, scalar_waiting_);
    const std::optional<double> ready = unfinished_.ready(scalar_waiting_, chip_.flag_cycles, 0);
    if (!ready) return false;
    if (*ready > scalar_time_) {
        scalar_time_ = *ready;
        // The compiler's flag, and then the access itself, which has not gone on meanwhile.
        work(chip_.barrier_cycles / kHandOversOfBarrier + chip_.scalar_access_cycles);
    }
    const Operand &operand = entry.operands[0];
    const uint64_t line = operand.address / kDataCacheLineBytes;
    if (operand.space == static_cast<uint64_t>(Space::Gm) && line != cached_line_) {
        cached_line_ = line;
        work(chip_.scalar_gm_miss_cycles);
    }
    return true;
}

bool Core::issue_scalar(const Entry &entry, double now) {
    const Record &record = entry.record;
    const Pipe source = pipe_of(record.source_pipe);
    const Pipe target = pipe_of(record.target_pipe);
    switch (record.op) {
        case Op::ScalarAccess: return issue_access(entry, now);
        case Op::SetFlag:
            if (source != Pipe::S) return issue_to_pipe(entry, source);
            flags_[flag(record)].raised_at.push_back(scalar_time_);
            return true;
        case Op::WaitFlag: {
            if (target != Pipe::S) return issue_to_pipe(entry, target);
            Fifo<double> &raised = flags_[flag(record)].raised_at;
            if (raised.empty()) return false;
            scalar_time_ = std::max(scalar_time_, raised.front() + chip_.flag_cycles);
            raised.pop_front();
            return true;
        }
        case Op::PipeBarrier:
            if (target == Pipe::ALL) return drain_all(chip_.barrier_cycles);
            return target == Pipe::S || issue_to_pipe(entry, target);
        case Op::SyncAll:
            if (!drain_all(0)) return false;
            in_sync_all_ = true;
            syncs_all_kinds_ = record.flag_id == kSyncAllKinds;
            return true;
        case Op::ReadClock:
            if (counters_.clock_reads.size() < kMaxClockReads) counters_.clock_reads.push_back(scalar_time_);
            return true;
        case Op::CleanCache: return true;
        case Op::CrossCoreSet:
            if (source != Pipe::S) return issue_to_pipe(entry, source);
            raise_for_others(record, scalar_time_);
            return true;
        case Op::CrossCoreWait: {
            Fifo<double> &raised = cross_core_flags_[record.flag_id];
            if (raised.empty()) return false;
            scalar_time_ = std::max(scalar_time_, raised.front() + chip_.flag_cycles);
            raised.pop_front();
            return true;
        }
        case Op::BlockEnd:
            if (!drain_all(0)) return false;
            block_done_ = true;
            active_ = false;
            counters_.total_cycles += scalar_time_ - block_start_;
            return true;
        default: throw std::runtime_error("malformed trace: unexpected scalar instruction");
    }
}

// Barriers between vector instructions: pays for the one that the compiler inserts, and notes whether the kernel's own
// holds the pipe up for nothing.
void Core::order_vectors(const Entry &entry) {
    const Record &record = entry.record;
    const Pipe target = pipe_of(record.target_pipe);
    held_up_cycles_ = 0;
    if (info(record.op).pipe == Pipe::V) {
        if (vector_order_.next(entry)) work(chip_.issue_cycles);
    } else if (record.op == Op::PipeBarrier && target == Pipe::V) {
        held_up_cycles_ = vector_order_.barrier(*records_) ? 0 : chip_.barrier_cycles;
    } else if (record.op == Op::SyncAll || (record.op == Op::PipeBarrier && target == Pipe::ALL)) {
        vector_order_.clear();
    } else if (record.op == Op::PipeBarrier) {
        held_up_cycles_ = chip_.barrier_cycles;
    }
}

void Core::raise_for_others(const Record &record, double time) {
    raised_for_others_.push_back({static_cast<CrossCoreMode>(record.repeats), record.flag_id, record.burst_bytes, time});
}

// Issues the next record if nothing blocks the scalar unit; its own work is paid once, when it is first looked at.
bool Core::issue(double now) {
    if (!pending_) {
        Entry entry;
        if (!records_->next(entry)) throw std::runtime_error("malformed trace: a block has no end");
        work(chip_.issue_cycles + entry.record.scalar_blocks * chip_.scalar_block_cycles +
                            entry.record.scalar_accesses * chip_.scalar_access_cycles);
        pending_ = entry;
        order_vectors(entry);
        if (scalar_order_.next(entry)) work(kInstructionsOfHandOver * chip_.issue_cycles);
    }
    const Pipe which = info(pending_->record.op).pipe;
    const bool issued = which == Pipe::S ? issue_scalar(*pending_, now) : issue_to_pipe(*pending_, which);
    if (issued) pending_.reset();
    return issued;
}

std::optional<double> Core::ready_time(const PipeState &state, Queued &head) {
    double time = std::max(head.issued, state.free_at);
    const Record &record = head.entry.record;
    if (record.op == Op::WaitFlag) {
        const Fifo<double> &raised = flags_[head.flag].raised_at;
        if (raised.empty()) return std::nullopt;
        return std::max(time, raised.front() + chip_.flag_cycles);
    }
    if (record.op == Op::SetFlag || record.op == Op::CrossCoreSet) return head.issued;
    if (record.op == Op::PipeBarrier) return std::max(time, state.drained_at);
    const std::optional<double> dependencies = unfinished_.ready(head.waiting, chip_.flag_cycles, unit_flag_cycles(record, chip_));
    if (!dependencies) return std::nullopt;
    return std::max(time, *dependencies);
}

void Core::count_traffic(const Record &record, const CacheTraffic &traffic) {
    const bool write = writes_gm(record.op);
    const bool through = write && (record.flag_id & kBypassesL2) != 0;
    (write ? counters_.write_traffic : counters_.read_traffic) += traffic;
    counters_.main_written_bytes += traffic.written_back_bytes + (through ? traffic.miss_bytes : 0.0);
}

// A stretch of time in which the pipe worked, by the instruction that ends it.
void Core::busy(Pipe which, Op op, double start, double end, uint64_t bytes) {
    if (end <= start) return;
    counters_.busy_cycles[static_cast<size_t>(which)] += end - start;
    if (timeline_.on()) timeline_.add(id_, which, info(op).name, start, end, bytes);
}

// An instruction waits for flags and for others before it has its pipe, except that a copy out of L0C with the unit flag
// waits in the pipe for the tiles of the multiplication.
double Core::has_pipe_from(const PipeState &state, const Queued &head, double start) const {
    const bool follows_tiles = unit_flag_cycles(head.entry.record, chip_) > 0;
    return follows_tiles ? std::max(head.issued, state.free_at) : start;
}

// Starts the head of a pipe at `start`.
void Core::start_instruction(PipeState &state, Pipe which, Queued &head, double start) {
    const Record &record = head.entry.record;
    const auto index = static_cast<size_t>(which);
    if (record.op == Op::SetFlag) {
        flags_[head.flag].raised_at.push_back(std::max(start, state.drained_at));
    } else if (record.op == Op::CrossCoreSet) {
        raise_for_others(record, std::max(start, state.drained_at));
    } else if (record.op == Op::WaitFlag) {
        flags_[head.flag].raised_at.pop_front();
        state.free_at = start;
    } else if (record.op == Op::PipeBarrier) {
        state.free_at = start + head.held_up_cycles;
    } else if (is_copy(record.op)) {
        const bool write = writes_gm(record.op);
        const Demand demand = memory_.demand_of(start, head.entry, write);
        (write ? counters_.written_bytes : counters_.read_bytes) += uint64_t{record.repeats} * record.burst_bytes;
        count_traffic(record, demand.traffic);
        ++counters_.instructions[index];
        state.copying = true;
        state.copy_slot = head.slot;
        state.copy_op = record.op;
        state.copy_bytes = uint64_t{record.repeats} * record.burst_bytes;
        state.copy_latency = demand.latency_cycles;
        state.copy_from = has_pipe_from(state, head, start);
        state.copy_until = start + demand.least_cycles;
        state.free_at = start;
        memory_.start(start, demand, id_ * kPipeCount + index);
    } else {
        const InstructionTime time = which == Pipe::V ? InstructionTime{vector_cycles(head.entry), 0} : cube_time(head.entry, chip_);
        ++counters_.instructions[index];
        const double from = has_pipe_from(state, head, start);
        state.free_at = start + time.busy_cycles;
        const double done = state.free_at + time.latency_cycles;
        busy(which, record.op, std::max(from, state.drained_at), done, uint64_t{record.repeats} * record.burst_bytes);
        state.drained_at = done;
        unfinished_.start(head.slot, start);
        unfinished_.finish(head.slot, state.drained_at);
    }
}

// Starts what the pipe can start by `now`; returns when its head could start, if that lies ahead and is known.
double Core::run_pipe(Pipe which, double now) {
    PipeState &state = pipe(which);
    while (!state.queue.empty() && !state.copying) {
        const std::optional<double> start = ready_time(state, state.queue.front());
        if (!start) return kNever;
        if (*start > now && is_copy(state.queue.front().entry.record.op)) return *start;
        const double could_start = std::max(state.queue.front().issued, state.free_at);
        counters_.wait_cycles[static_cast<size_t>(which)] += std::max(0.0, *start - could_start);
        start_instruction(state, which, state.queue.front(), *start);
        unfinished_.release(state.queue.front().waiting);
        state.queue.pop();
            if (state.started_at.size() == queue_depth_) state.started_at.pop();
        state.started_at.push(queue_depth_) = *start;
    }
    return kNever;
}

void Core::copy_finished(Pipe which, double now) {
    PipeState &state = pipe(which);
    const double ended = std::max(now, state.copy_until);
    const double arrived = ended + state.copy_latency;
    busy(which, state.copy_op, std::max(state.copy_from, state.drained_at), arrived, state.copy_bytes);
    state.copying = false;
    state.free_at = ended;
    state.drained_at = arrived;
    unfinished_.finish(state.copy_slot, state.drained_at);
    note_head(which);
}

double Core::advance(double now) {
    double wake = kNever;
    for (bool progress = true; progress && active_ && !in_sync_all_;) {
        progress = false;
        wake = kNever;
        while (active_ && !in_sync_all_ && issue(now)) progress = true;
        for (uint32_t heads = idle_heads_; heads != 0; heads &= heads - 1) {
            const Pipe which = pipe_of(static_cast<uint8_t>(__builtin_ctz(heads)));
            const size_t before = pipe(which).queue.size();
            wake = std::min(wake, run_pipe(which, now));
            progress |= pipe(which).queue.size() != before;
            note_head(which);
        }
    }
    return wake;
}

}  // namespace asim
