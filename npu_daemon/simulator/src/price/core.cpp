#include "asim/timing/core.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace asim {

namespace {

constexpr uint64_t kDataCacheLineBytes = 64;
constexpr double kHandOversOfBarrier = 2;    // flags from one pipe to another, see barrier_cycles
constexpr double kInstructionsOfHandOver = 2;   // one sets the flag, one awaits it

Pipe pipe_of(uint8_t code) { return static_cast<Pipe>(code); }

Pipe lowest_of(uint32_t pipes) { return static_cast<Pipe>(__builtin_ctz(pipes)); }

bool is_copy(Op op) { return reads_gm(op) || writes_gm(op); }

}  // namespace

void Core::start_block(const Cursor &cursor, double now, double wait_cycles, double entry_cycles) {
    records_.emplace(cursor);
    has_pending_ = false;
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

// What of `entry` counts until its pipe takes it; costs that depend on nothing else are computed here.
void Core::fill_in(Queued &queued, const Entry &entry, Pipe which) {
    const Record &record = entry.record;
    queued.record = record;
    queued.issued = scalar_time_;
    queued.waiting.clear();
    queued.unit_flag_cycles = unit_flag_cycles(record, chip_);
    if (info(record.op).pipe == Pipe::S) {
        if (record.op == Op::SetFlag || record.op == Op::WaitFlag) queued.flag = flag(record);
        queued.time = {held_up_cycles_, 0};
        return;
    }
    unfinished_.forget(scalar_time_);
    unfinished_.find_conflicts(entry, which, scalar_time_, queued.waiting);
    unfinished_.hold(queued.waiting);
    queued.slot = unfinished_.add(entry, which);
    if (is_copy(record.op)) {
        pipe(which).copies.push(queue_depth_) = entry;
    } else {
        queued.time = which == Pipe::V ? InstructionTime{vector_cycles(entry), 0} : cube_time(entry, chip_);
    }
}

bool Core::issue_to_pipe(const Entry &entry, Pipe which) {
    PipeState &state = pipe(which);
    if (state.queue.size() >= queue_depth_) return false;
    // A place is free once the instruction `depth` before this one has started.
    const size_t places = queue_depth_ - state.queue.size();
    if (state.started_at.size() >= places) {
        scalar_time_ = std::max(scalar_time_, state.started_at[state.started_at.size() - places]);
    }
    if (state.queue.empty() && which != Pipe::S) look_at(which);    // the scalar unit starts its own
    fill_in(state.queue.push(queue_depth_), entry, which);
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
            look_at(target);
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
    const Record &record = pending_.record;
    if (!has_pending_) {
        if (!records_->next(pending_)) throw std::runtime_error("malformed trace: a block has no end");
        has_pending_ = true;
        work(chip_.issue_cycles + record.scalar_blocks * chip_.scalar_block_cycles + record.scalar_accesses * chip_.scalar_access_cycles);
        order_vectors(pending_);
        if (scalar_order_.next(pending_)) work(kInstructionsOfHandOver * chip_.issue_cycles);
    }
    const Pipe which = info(record.op).pipe;
    const bool issued = which == Pipe::S ? issue_scalar(pending_, now) : issue_to_pipe(pending_, which);
    has_pending_ = !issued;
    return issued;
}

std::optional<double> Core::ready_time(const PipeState &state, Queued &head) {
    double time = std::max(head.issued, state.free_at);
    const Record &record = head.record;
    if (record.op == Op::WaitFlag) {
        const Fifo<double> &raised = flags_[head.flag].raised_at;
        if (raised.empty()) return std::nullopt;
        return std::max(time, raised.front() + chip_.flag_cycles);
    }
    if (record.op == Op::SetFlag || record.op == Op::CrossCoreSet) return head.issued;
    if (record.op == Op::PipeBarrier) return std::max(time, state.drained_at);
    const std::optional<double> dependencies = unfinished_.ready(head.waiting, chip_.flag_cycles, head.unit_flag_cycles);
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
    return head.unit_flag_cycles > 0 ? std::max(head.issued, state.free_at) : start;
}

// Starts the head of a pipe at `start`.
void Core::start_instruction(PipeState &state, Pipe which, Queued &head, double start) {
    const Record &record = head.record;
    if (record.op == Op::SetFlag) {
        flags_[head.flag].raised_at.push_back(std::max(start, state.drained_at));
        look_at(pipe_of(record.target_pipe));
    } else if (record.op == Op::CrossCoreSet) {
        raise_for_others(record, std::max(start, state.drained_at));
    } else if (record.op == Op::WaitFlag) {
        flags_[head.flag].raised_at.pop_front();
        state.free_at = start;
    } else if (record.op == Op::PipeBarrier) {
        state.free_at = start + head.time.busy_cycles;
    } else if (is_copy(record.op)) {
        start_copy(state, which, head, start);
    } else {
        ++counters_.instructions[static_cast<size_t>(which)];
        const double from = has_pipe_from(state, head, start);
        state.free_at = start + head.time.busy_cycles;
        const double done = state.free_at + head.time.latency_cycles;
        busy(which, record.op, std::max(from, state.drained_at), done, uint64_t{record.repeats} * record.burst_bytes);
        state.drained_at = done;
        unfinished_.start(head.slot, start);
        finish(head.slot, done);
    }
}

void Core::start_copy(PipeState &state, Pipe which, const Queued &head, double start) {
    const Record &record = head.record;
    const auto index = static_cast<size_t>(which);
    const bool write = writes_gm(record.op);
    const Demand demand = memory_.demand_of(start, state.copies.front(), write);
    state.copies.pop();
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
}

// The instruction has an end: a head that has to follow it may have a start.
void Core::finish(uint32_t slot, double time) {
    unfinished_.finish(slot, time);
    for (uint32_t heads = awaiting_heads_; heads != 0; heads &= heads - 1) {
        const Pipe which = lowest_of(heads);
        if (pipe(which).awaited_slot == slot) look_at(which);
    }
}

// Starts what the pipe can start by `now`; says whether that is anything.
bool Core::run_pipe(Pipe which, double now) {
    PipeState &state = pipe(which);
    timed_heads_ &= ~bit(which);
    awaiting_heads_ &= ~bit(which);
    bool started = false;
    for (; !state.queue.empty() && !state.copying; started = true) {
        Queued &head = state.queue.front();
        const std::optional<double> start = ready_time(state, head);
        if (!start) {
            if (head.record.op == Op::WaitFlag) return started;     // whoever raises it looks at this pipe
            awaiting_heads_ |= bit(which);
            state.awaited_slot = Unfinished::awaited(head.waiting);
            return started;
        }
        if (*start > now && is_copy(head.record.op)) {
            timed_heads_ |= bit(which);
            state.head_start = *start;
            return started;
        }
        const double could_start = std::max(head.issued, state.free_at);
        counters_.wait_cycles[static_cast<size_t>(which)] += std::max(0.0, *start - could_start);
        start_instruction(state, which, head, *start);
        unfinished_.release(head.waiting);
        state.queue.pop();
        if (state.started_at.size() == queue_depth_) state.started_at.pop();
        state.started_at.push(queue_depth_) = *start;
    }
    return started;
}

// Starts what the pipes can start by `now`, each looked at once, in their order; says whether that is anything.
bool Core::run_pipes(double now) {
    bool started = false;
    for (uint32_t looked_at = bit(Pipe::S), left; (left = to_look_at_ & ~looked_at) != 0;) {
        const Pipe which = lowest_of(left);
        looked_at |= 2 * bit(which) - 1;
        to_look_at_ &= ~bit(which);
        started |= run_pipe(which, now);
    }
    return started;
}

void Core::copy_finished(Pipe which, double now) {
    PipeState &state = pipe(which);
    const double ended = std::max(now, state.copy_until);
    const double arrived = ended + state.copy_latency;
    busy(which, state.copy_op, std::max(state.copy_from, state.drained_at), arrived, state.copy_bytes);
    state.copying = false;
    state.free_at = ended;
    state.drained_at = arrived;
    finish(state.copy_slot, arrived);
    look_at(which);
}

// When the first of the copies starts that wait for nothing but their time.
double Core::next_start() const {
    double first = kNever;
    for (uint32_t heads = timed_heads_; heads != 0; heads &= heads - 1) {
        first = std::min(first, pipes_[static_cast<size_t>(lowest_of(heads))].head_start);
    }
    return first;
}

double Core::advance(double now) {
    if (next_start() <= now) to_look_at_ |= timed_heads_;
    for (bool progress = true; progress && active_ && !in_sync_all_;) {
        progress = false;
        while (active_ && !in_sync_all_ && issue(now)) progress = true;
        progress |= run_pipes(now);
    }
    return next_start();
}

}  // namespace asim
