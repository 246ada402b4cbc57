#include <algorithm>

#include "asim/timing/core.h"

namespace asim {

namespace {

Pipe lowest_of(uint32_t pipes) { return static_cast<Pipe>(__builtin_ctz(pipes)); }

}  // namespace

void Core::count_traffic(const GlobalCopy &copy, const CacheTraffic &traffic) {
    (copy.writes() ? counters_.written_bytes : counters_.read_bytes) += copy.bytes();
    (copy.writes() ? counters_.write_traffic : counters_.read_traffic) += traffic;
    const bool through = copy.writes() && copy.bypasses_l2();
    const double main_written_bytes = traffic.written_back_bytes + (through ? traffic.miss_bytes : 0.0);
    if (main_written_bytes > 0) counters_.main_written_bytes += main_written_bytes;
}

// A stretch of time in which the pipe worked, by the instruction that ends it.
void Core::busy(Pipe which, Op op, double start, double end, uint64_t bytes) {
    if (end <= start) return;
    pipe(which).busy_cycles += end - start;
    if (draws_) shared_.timeline.add(id_, which, info(op).name, start, end, bytes);
}

// A flag goes to whom it concerns when what was issued before it has ended.
void Core::set_flag(PipeState &state, Queued &head) {
    const double raised = std::max(head.time, state.drained_at);
    if (head.kind == Kind::Set) {
        flags_[head.flag].push(raised);
        look_at(head.target);
    } else {
        state.raised.front().time = raised;
        raised_for_others_.push_back(state.raised.front());
        state.raised.pop();
    }
}

// Passes a flag that is awaited, or a barrier; says whether that can be done.
bool Core::pass(PipeState &state, Queued &head) {
    const double could_start = std::max(head.time, state.free_at);
    if (head.kind == Kind::Wait) {
        FlagTimes &raised = flags_[head.flag];
        if (raised.empty()) return false;       // whoever raises it looks at this pipe
        head.time = std::max(could_start, raised.front() + chip_.flag_cycles);
        state.free_at = head.time;
        raised.pop();
    } else {
        const Work &barrier = state.works.front();
        head.time = barrier.after_own ? std::max(could_start, state.drained_at) : could_start;
        state.free_at = head.time + barrier.time.busy_cycles;
        state.works.pop();
    }
    state.wait_cycles += head.time - could_start;
    return true;
}

// When an instruction at the head of its pipe starts, or kNever while that is unknown.
double Core::start_of(const PipeState &state, Pipe which, const Queued &head, double unit_cycles) {
    const double could_start = std::max(head.time, state.free_at);
    // Behind the compiler's barrier, which takes as long as one of the kernel's own.
    const bool after_own = head.kind != Kind::Copy && state.works.front().after_own;
    const double start = after_own ? std::max(could_start, state.drained_at) + chip_.issue_cycles : could_start;
    return head.follows == 0 ? start : std::max(start, unfinished_.ready(which, head.follows, chip_.flag_cycles, unit_cycles));
}

// Starts an instruction that follows nothing whose end is unknown, and a copy if its time has come; says whether it did.
bool Core::start_instruction(PipeState &state, Pipe which, Queued &head, double now) {
    const bool copy = head.kind == Kind::Copy;
    const double could_start = std::max(head.time, state.free_at);
    const double unit_cycles = which == Pipe::FIX ? state.unit_cycles.front() : 0;
    const double start = state.timed ? state.head_start : start_of(state, which, head, unit_cycles);
    if (start == kNever) {
        awaiting_heads_ |= bit(which);
        return false;
    }
    state.timed = start > now && copy;
    if (state.timed) {
        timed_heads_ |= bit(which);
        state.head_start = start;
        return false;
    }
    unfinished_.release(which, head.follows);
    if (which == Pipe::FIX) state.unit_cycles.pop();
    head.time = start;
    state.wait_cycles += start - could_start;
    ++state.instructions;
    // It waits for flags and for others before it has its pipe, except that a copy out of L0C with the unit flag waits in the
    // pipe for the tiles of the multiplication.
    state.has_pipe_from = unit_cycles > 0 ? could_start : start;
    copy ? start_copy(state, which, start) : start_work(state, which, start);
    return true;
}

void Core::start_work(PipeState &state, Pipe which, double start) {
    const Work work = state.works.front();
    state.works.pop();
    state.free_at = start + work.time.busy_cycles;
    const double done = std::max(state.drained_at, state.free_at + work.time.latency_cycles);
    busy(which, work.op, std::max(state.has_pipe_from, state.drained_at), done, work.bytes);
    state.drained_at = done;
    finish(which, start, done, work.tile_by_tile);
}

void Core::start_copy(PipeState &state, Pipe which, double start) {
    const GlobalCopy &copy = state.copies.front();
    const Demand demand = shared_.memory.demand_of(start, copy);
    count_traffic(copy, demand.traffic);
    state.copying = true;
    if (draws_) {
        state.copy_op = copy.op;
        state.copy_bytes = copy.bytes();
    }
    state.copies.pop();
    state.copy_latency = demand.latency_cycles;
    state.copy_until = start + demand.least_cycles;
    state.free_at = start;
    if (shared_.memory.start(start, demand, id_ * kPipeCount + static_cast<uint32_t>(which))) written_ |= bit(which);
}

// The instruction has an end: a head that has to follow it may have a start.
void Core::finish(Pipe finished, double start, double end, bool tile_by_tile) {
    unfinished_.finish(finished, start, end, tile_by_tile);
    for (uint32_t heads = awaiting_heads_; heads != 0; heads &= heads - 1) {
        const Pipe which = lowest_of(heads);
        if (unfinished_.settled(which)) look_at(which);
    }
}

// Starts the head of the pipe if that can be done by `now`; says whether it was.
bool Core::start_head(PipeState &state, Pipe which, double now) {
    Queued &head = state.place(state.started);
    switch (head.kind) {
        case Kind::Set:
        case Kind::CrossCoreSet: set_flag(state, head); return true;
        case Kind::Wait:
        case Kind::Barrier: return pass(state, head);
        default: return start_instruction(state, which, head, now);
    }
}

// Starts what the pipe can start by `now`.
void Core::run_pipe(Pipe which, double now) {
    PipeState &state = pipe(which);
    timed_heads_ &= ~bit(which);
    awaiting_heads_ &= ~bit(which);
    while (state.waiting() > 0 && !state.copying && start_head(state, which, now)) ++state.started;
}

// Starts what the pipes can start by `now`, the lowest that has to be looked at first.
void Core::run_pipes(double now) {
    while (to_look_at_ != 0) {
        const Pipe which = lowest_of(to_look_at_);
        to_look_at_ &= to_look_at_ - 1;
        run_pipe(which, now);
    }
}

void Core::copy_finished(Pipe which, double now) {
    PipeState &state = pipe(which);
    const double ended = std::max(now, state.copy_until);
    const double arrived = std::max(state.drained_at, ended + state.copy_latency);     // flags and barriers come after all copies
    busy(which, state.copy_op, std::max(state.has_pipe_from, state.drained_at), arrived, state.copy_bytes);
    state.copying = false;
    state.free_at = ended;
    state.drained_at = arrived;
    finish(which, ended, arrived, false);
    look_at(which);
}

// When the first of the copies starts that wait for nothing but their time.
double Core::first_start() const {
    double first = kNever;
    for (uint32_t heads = timed_heads_; heads != 0; heads &= heads - 1) {
        first = std::min(first, pipes_[static_cast<size_t>(lowest_of(heads))].head_start);
    }
    return first;
}

}  // namespace asim
