#include "asim/timing/core.h"

#include <algorithm>
#include <stdexcept>

namespace asim {

namespace {

constexpr double kHandOversOfBarrier = 2;    // flags from one pipe to another, see barrier_cycles
constexpr uint64_t kCodeBytes = 4;             // of an instruction; lines and units: docs/hardware.md section 1
constexpr uint64_t kCodeLineBytes = 64;
constexpr uint64_t kCodeUnitBytes = 2048;
constexpr double kInstructionsOfHandOver = 2;   // one sets the flag, one awaits it

Pipe pipe_of(uint8_t code) { return static_cast<Pipe>(code); }

RaisedFlag raised_flag(const Record &record, double time) {
    return {static_cast<CrossCoreMode>(record.repeats), record.flag_id, record.burst_bytes, time};
}

}  // namespace

void Core::start_block(const Cursor &cursor, double now, double wait_cycles, double entry_cycles) {
    records_.emplace(cursor);
    orders_scalars_ = cursor.scalar_meets_pipes();
    has_pending_ = false;
    block_start_ = now;
    scalar_time_ = now + wait_cycles;
    work(entry_cycles);
    for (PipeState &state : pipes_) {
        state.free_at = state.drained_at = scalar_time_;
        state.issued = state.started = 0;
    }
    flags_.clear();
    vector_order_.clear();
    scalar_order_.clear();
    for (Ring<double> &raised : cross_core_flags_) raised.clear();
    data_cache_.clear();
    block_done_ = false;
    active_ = true;
}

CoreCounters Core::counters() const {
    CoreCounters all = counters_;
    for (size_t pipe = 0; pipe < kPipeCount; ++pipe) {
        all.busy_cycles[pipe] = pipes_[pipe].busy_cycles;
        all.wait_cycles[pipe] = pipes_[pipe].wait_cycles;
        all.instructions[pipe] = pipes_[pipe].instructions;
    }
    all.busy_cycles[static_cast<size_t>(Pipe::S)] = scalar_cycles_;
    return all;
}

// What follows may start when the last repeat has been taken; the results are there later.
InstructionTime Core::vector_time(const Entry &entry) {
    const Record &record = entry.record;
    if (info(record.op).cost == Cost::Register) return {chip_.issue_cycles, 0};
    const double start = chip_.start_cycles(info(record.op).cost);
    const double hidden = start - chip_.vector_issue_cycles;
    if (record.repeats == 0) return {chip_.vector_issue_cycles, hidden};
    const double throughput = chip_.repeat_cycles(info(record.op).cost, record.dtype_bytes);
    // Divisions take a repeat in parts: 32 elements a cycle are 4 blocks of float or 2 of half, each read of which may conflict.
    const uint32_t parts = info(record.op).cost == Cost::Divide ? static_cast<uint32_t>(std::clamp(throughput, 1.0, 8.0)) : 1;
    const BankCycles bank = shared_.bank_conflicts.cycles_per_repeat(entry, parts);
    counters_.bank_group_conflict_cycles += record.repeats * std::max(0.0, bank.group_cycles - throughput);
    counters_.bank_conflict_cycles += record.repeats * std::max(0.0, bank.cycles - std::max(throughput, bank.group_cycles));
    const double repeat_cycles = record.repeats * std::max(throughput, bank.cycles);
    OfInstruction &all = counters_.vector_cycles[static_cast<size_t>(record.op)];
    all.conflict_cycles += repeat_cycles - record.repeats * throughput;
    all.repeat_cycles += repeat_cycles;
    return {chip_.vector_issue_cycles + repeat_cycles, hidden};
}

// What of `entry` counts until its pipe takes it; costs that depend on nothing else are computed here.
[[gnu::always_inline]] inline void Core::fill_in(PipeState &state, Queued &queued, const Entry &entry, Pipe which) {
    const Record &record = entry.record;
    queued.time = scalar_time_;
    switch (record.op) {
        case Op::SetFlag:
            queued.kind = Kind::Set;
            queued.flag = entry.flag;
            queued.target = pipe_of(record.target_pipe);
            break;
        case Op::WaitFlag:
            queued.kind = Kind::Wait;
            queued.flag = entry.flag;
            break;
        case Op::PipeBarrier: {
            queued.kind = Kind::Barrier;
            Work &barrier = state.works.push();
            barrier.time = {held_up_cycles_, 0};
            barrier.after_own = which != Pipe::V;   // there who needs results waits for them, see order_vectors
            break;
        }
        case Op::CrossCoreSet:
            queued.kind = Kind::CrossCoreSet;
            state.raised.push(raised_flag(record, 0));
            break;
        default: fill_in_instruction(state, queued, entry, which);
    }
}

void Core::fill_in_instruction(PipeState &state, Queued &queued, const Entry &entry, Pipe which) {
    const Record &record = entry.record;
    queued.follows = static_cast<uint8_t>(unfinished_.add(entry, which, scalar_time_));
    if (which == Pipe::FIX) state.unit_cycles.push(unit_flag_cycles(record, chip_));
    if (entry.kind == RecordKind::Copy) {
        queued.kind = Kind::Copy;
        state.copies.push(GlobalCopy(entry));
        return;
    }
    queued.kind = Kind::Work;
    Work &work = state.works.push();
    work.time = which == Pipe::V ? vector_time(entry) : cube_time(entry, chip_);
    work.bytes = uint64_t{record.repeats} * record.burst_bytes;
    work.op = record.op;
    work.after_own = after_own_;
    work.tile_by_tile = record.op == Op::Mmad && (record.flag_id & kUnitFlag) != 0;
}

inline bool Core::issue_to_pipe(const Entry &entry, Pipe which) {
    PipeState &state = pipe(which);
    full_ = state.waiting() >= queue_depth_ ? which : Pipe::S;
    if (full_ != Pipe::S) return false;
    // A place is free once the instruction `depth` before this one has started.
    if (state.issued >= queue_depth_) scalar_time_ = std::max(scalar_time_, state.place(state.issued - queue_depth_).time);
    if (state.waiting() == 0) look_at(which);
    fill_in(state, state.place(state.issued), entry, which);
    ++state.issued;
    return true;
}

// Waits until every pipe has finished what was issued to it.
bool Core::drain_all(double extra_cycles) {
    double drained = scalar_time_;
    for (const PipeState &state : pipes_) {
        if (state.waiting() > 0 || state.copying) return false;
        drained = std::max(drained, state.drained_at);
    }
    scalar_time_ = drained + extra_cycles;
    return true;
}

bool Core::issue_access(const Entry &entry) {
    // Whatever is issued later starts later: a scalar access need not be remembered.
    const std::optional<double> before = unfinished_.end_before(entry, scalar_time_);
    if (!before) return false;
    if (*before > scalar_time_) {
        scalar_time_ = *before + chip_.flag_cycles;
        // The compiler's flag, and then the access itself, which has not gone on meanwhile.
        work(chip_.barrier_cycles / kHandOversOfBarrier + chip_.scalar_access_cycles, &ScalarWork::order_cycles);
    }
    const Operand &operand = entry.operands[0];
    if (operand.space != static_cast<uint64_t>(Space::Gm)) return true;
    const bool past_cache = (entry.record.flag_id & kPastCache) != 0;
    switch (past_cache ? DataCache::Found::Nothing : data_cache_.load(operand.address)) {
        case DataCache::Found::Line: break;
        case DataCache::Found::LineBefore: work(chip_.scalar_gm_stream_cycles, &ScalarWork::access_cycles); break;
        case DataCache::Found::Nothing: work(chip_.scalar_gm_miss_cycles, &ScalarWork::access_cycles); break;
    }
    return true;
}

void Core::clean_cache(const Entry &entry) {
    if (entry.record.operands == 0) data_cache_.clear();
    else data_cache_.drop(entry.operands[0].address);
}

bool Core::issue_scalar(const Entry &entry) {
    const Record &record = entry.record;
    const Pipe target = pipe_of(record.target_pipe);
    switch (record.op) {
        case Op::ScalarAccess: return issue_access(entry);
        case Op::SetFlag:
            flags_[entry.flag].push(scalar_time_);
            look_at(target);
            return true;
        case Op::WaitFlag: {
            FlagTimes &raised = flags_[entry.flag];
            if (raised.empty()) return false;
            scalar_time_ = std::max(scalar_time_, raised.front() + chip_.flag_cycles);
            raised.pop();
            return true;
        }
        case Op::PipeBarrier:
            return target == Pipe::S || drain_all(chip_.barrier_cycles);
        case Op::SyncAll:
            if (!drain_all(0)) return false;
            in_sync_all_ = true;
            syncs_all_kinds_ = record.flag_id == kSyncAllKinds;
            return true;
        case Op::ReadClock:
            if (counters_.clock_reads.size() < kMaxClockReads) counters_.clock_reads.push_back(scalar_time_);
            return true;
        case Op::CleanCache: clean_cache(entry); return true;
        case Op::CrossCoreSet:
            raised_for_others_.push_back(raised_flag(record, scalar_time_));
            return true;
        case Op::CrossCoreWait: {
            Ring<double> &raised = cross_core_flags_[record.flag_id];
            if (raised.empty()) return false;
            scalar_time_ = std::max(scalar_time_, raised.front() + chip_.flag_cycles);
            raised.pop();
            return true;
        }
        case Op::BlockEnd:
            if (!drain_all(0)) return false;
            end_block();
            return true;
        default: throw std::runtime_error("malformed trace: unexpected scalar instruction");
    }
}

void Core::end_block() {
    if (records_->next()) throw std::runtime_error("malformed trace: a block goes on after its end");
    block_done_ = true;
    active_ = false;
    // Code of later blocks is there already, unless the cache cannot hold all of it.
    has_code_ = fetched_ * kCodeBytes <= chip_.icache_bytes;
    fetched_ = 0;
    counters_.total_cycles += scalar_time_ - block_start_;
}

// Barriers between vector instructions. One holds up the instruction that needs an earlier result, whether the kernel has it or the
// compiler inserts it; the kernel's own take as long as a flag besides.
void Core::order_vectors(const Entry &entry) {
    const Record &record = entry.record;
    const Pipe target = pipe_of(record.target_pipe);
    held_up_cycles_ = 0;
    after_own_ = false;
    if (info(record.op).pipe == Pipe::V) {
        after_own_ = vector_order_.next(entry);
        if (after_own_) work(chip_.issue_cycles, &ScalarWork::order_cycles);
    } else if (record.op == Op::PipeBarrier && target == Pipe::V) {
        held_up_cycles_ = chip_.flag_cycles;
    } else if (record.op == Op::SyncAll || (record.op == Op::PipeBarrier && target == Pipe::ALL)) {
        vector_order_.clear();
    } else if (record.op == Op::PipeBarrier) {
        held_up_cycles_ = chip_.barrier_cycles;
    }
}

void Core::take_flag(const Entry &entry) {
    if (entry.flag >= flags_.size()) flags_.resize(entry.flag + 1);
    if (orders_scalars_) scalar_order_.flag(entry.record);
}

// What the scalar unit takes for a record and its own work before it.
double Core::scalar_cycles(const ScalarCounts &counts) const {
    double cycles = chip_.issue_cycles;
    for (uint32_t i = 0; i < kScalarClassCount; ++i) cycles += counts[i] * chip_.scalar_cycles[i];
    return cycles;
}

// Instructions that come for the first time lie one behind another, as far as a trace tells: their lines follow each other within
// a unit, which the cores of a launch are given in turn.
double Core::fetch_cycles(uint32_t instructions) {
    const auto needed = [](uint64_t count, uint64_t each) { return (count * kCodeBytes + each - 1) / each; };
    const uint64_t before = fetched_;
    fetched_ += instructions;
    const auto lines = static_cast<double>(needed(fetched_, kCodeLineBytes) - needed(before, kCodeLineBytes));
    const auto units = static_cast<double>(needed(fetched_, kCodeUnitBytes) - needed(before, kCodeUnitBytes));
    return lines * chip_.code_line_cycles + units * (chip_.code_unit_cycles + shared_.cores * chip_.code_turn_cycles);
}

// What the work before a record was for, where that is asked for.
void Core::note_work(const ScalarCounts &counts) {
    ScalarWork &all = counters_.scalar_work;
    all.issue_cycles += chip_.issue_cycles;
    for (uint32_t i = 0; i < kScalarClassCount; ++i) {
        const double cycles = counts[i] * chip_.scalar_cycles[i];
        switch (static_cast<ScalarClass>(i)) {
            case ScalarClass::Queue: all.queue_cycles += cycles; break;
            case ScalarClass::Access:
            case ScalarClass::Load:
            case ScalarClass::Store: all.access_cycles += cycles; break;
            case ScalarClass::Fetched: break;   // see fetch_cycles
            default: all.code_cycles += cycles;
        }
    }
    if (!has_code_) all.fetched_instructions += counts[static_cast<size_t>(ScalarClass::Fetched)];
}

// The scalar unit's own work on a record is paid once, when it comes to it.
[[gnu::always_inline]] inline void Core::take_record() {
    if (!records_->next()) throw std::runtime_error("malformed trace: a block has no end");
    const Entry &entry = records_->current();
    work(records_->scalar_cycles([this](const ScalarCounts &counts) { return scalar_cycles(counts); }));
    const uint32_t fetched = has_code_ ? 0 : records_->scalar_counts()[static_cast<size_t>(ScalarClass::Fetched)];
    if (__builtin_expect(fetched != 0, 0)) work(fetch_cycles(fetched), &ScalarWork::fetch_cycles);
    if (draws_) note_work(records_->scalar_counts());
    if (entry.kind == RecordKind::Flag) return take_flag(entry);
    if (entry.kind == RecordKind::Copy || entry.kind == RecordKind::Access) {
        shared_.coverage.mark(id_, entry);
    } else {
        order_vectors(entry);
    }
    if (orders_scalars_ && scalar_order_.next(entry)) work(kInstructionsOfHandOver * chip_.issue_cycles, &ScalarWork::order_cycles);
}

// Issues the next record if nothing blocks the scalar unit.
inline bool Core::issue() {
    if (!has_pending_) take_record();
    const Entry &entry = records_->current();
    const bool issued = entry.pipe == Pipe::S ? issue_scalar(entry) : issue_to_pipe(entry, entry.pipe);
    has_pending_ = !issued;
    return issued;
}

// Not where the pipe of the current record has no place for it: nothing else need be tried.
inline bool Core::can_issue() {
    return active_ && !in_sync_all_ && (full_ == Pipe::S || pipe(full_).waiting() < queue_depth_);
}

// Issues records until something blocks the scalar unit; says whether there were any.
[[gnu::noinline]] bool Core::issue_some() {
    bool issued = false;
    while (active_ && !in_sync_all_ && issue()) issued = true;
    return issued;
}

inline void Core::do_all(double now) {
    do run_pipes(now);
    while (can_issue() && issue_some());
}

double Core::advance(double now) {
    if (next_start_ <= now) to_look_at_ |= timed_heads_;
    do_all(now);
    for (; written_ != 0; do_all(now)) {
        const auto which = static_cast<Pipe>(__builtin_ctz(written_));
        written_ &= written_ - 1;
        copy_finished(which, now);
    }
    next_start_ = first_start();
    return next_start_;
}

}  // namespace asim
