#include <algorithm>

#include "asim/timing/core.h"

namespace asim {

namespace {

Pipe lowest_of(uint32_t pipes) { return static_cast<Pipe>(__builtin_ctz(pipes)); }

}  // namespace

std::optional<double> Core::ready_time(PipeState &state, const Queued &head) {
    const double time = std::max(head.issued, state.free_at);
    const Record &record = head.record;
    if (record.op == Op::WaitFlag) {
        const Ring<double> &raised = flags_[head.place].raised_at;
        if (raised.empty()) return std::nullopt;
        return std::max(time, raised.front() + chip_.flag_cycles);
    }
    if (record.op == Op::SetFlag || record.op == Op::CrossCoreSet) return head.issued;
    if (record.op == Op::PipeBarrier) return std::max(time, state.drained_at);
    const std::optional<double> dependencies =
        unfinished_.ready(state.waiting, head.follows, chip_.flag_cycles, unit_flag_cycles(record, chip_));
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
    pipe(which).busy_cycles += end - start;
    if (shared_.timeline.on()) shared_.timeline.add(id_, which, info(op).name, start, end, bytes);
}

// An instruction waits for flags and for others before it has its pipe, except that a copy out of L0C with the unit flag
// waits in the pipe for the tiles of the multiplication.
double Core::has_pipe_from(const PipeState &state, const Queued &head, double start) const {
    return unit_flag_cycles(head.record, chip_) > 0 ? std::max(head.issued, state.free_at) : start;
}

// Starts the head of a pipe at `start`.
void Core::start_instruction(PipeState &state, Pipe which, const Queued &head, double start) {
    const Record &record = head.record;
    if (record.op == Op::SetFlag) {
        flags_[head.place].raised_at.push(std::max(start, state.drained_at));
        look_at(static_cast<Pipe>(record.target_pipe));
    } else if (record.op == Op::CrossCoreSet) {
        raise_for_others(record, std::max(start, state.drained_at));
    } else if (record.op == Op::WaitFlag) {
        flags_[head.place].raised_at.pop();
        state.free_at = start;
    } else if (record.op == Op::PipeBarrier) {
        state.free_at = start + head.time.busy_cycles;
    } else if (is_copy(record.op)) {
        start_copy(state, which, head, start);
    } else {
        ++state.instructions;
        const double from = has_pipe_from(state, head, start);
        state.free_at = start + head.time.busy_cycles;
        const double done = state.free_at + head.time.latency_cycles;
        busy(which, record.op, std::max(from, state.drained_at), done, uint64_t{record.repeats} * record.burst_bytes);
        state.drained_at = done;
        unfinished_.start(head.place, start);
        finish(head.place, done);
    }
}

void Core::start_copy(PipeState &state, Pipe which, const Queued &head, double start) {
    const Record &record = head.record;
    const bool write = writes_gm(record.op);
    const Demand demand = shared_.memory.demand_of(start, state.copies.front(), write);
    state.copies.pop();
    (write ? counters_.written_bytes : counters_.read_bytes) += uint64_t{record.repeats} * record.burst_bytes;
    count_traffic(record, demand.traffic);
    ++state.instructions;
    state.copying = true;
    state.copy_slot = head.place;
    state.copy_op = record.op;
    state.copy_bytes = uint64_t{record.repeats} * record.burst_bytes;
    state.copy_latency = demand.latency_cycles;
    state.copy_from = has_pipe_from(state, head, start);
    state.copy_until = start + demand.least_cycles;
    state.free_at = start;
    shared_.memory.start(start, demand, id_ * kPipeCount + static_cast<uint32_t>(which));
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
        const Queued &head = state.queue.front();
        const std::optional<double> start = ready_time(state, head);
        if (!start) {
            if (head.record.op == Op::WaitFlag) return started;     // whoever raises it looks at this pipe
            awaiting_heads_ |= bit(which);
            state.awaited_slot = Unfinished::awaited(state.waiting, head.follows);
            return started;
        }
        if (*start > now && is_copy(head.record.op)) {
            timed_heads_ |= bit(which);
            state.head_start = *start;
            return started;
        }
        const double could_start = std::max(head.issued, state.free_at);
        state.wait_cycles += std::max(0.0, *start - could_start);
        start_instruction(state, which, head, *start);
        unfinished_.release(state.waiting, head.follows);
        state.queue.pop();
        if (state.started_at.size() == queue_depth_) state.started_at.pop();
        state.started_at.push(*start);
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

}  // namespace asim
