#include "asim/races/core_races.h"

#include "asim/races/footprint.h"

namespace asim {

std::optional<Overlap> CoreRaces::next(const Entry &entry, uint64_t where) {
    const Record &record = entry.record;
    switch (record.op) {
        case Op::SetFlag: clocks_.set_flag(record); break;
        case Op::WaitFlag: clocks_.wait_flag(record); break;
        case Op::PipeBarrier: barrier(static_cast<Pipe>(record.target_pipe)); break;
        case Op::SyncAll: clocks_.barrier(Pipe::ALL); break;
        case Op::CleanCache: clocks_.issue(Pipe::S); return std::nullopt;
        default: break;
    }
    return record.operands > 0 ? access(entry, where) : std::nullopt;
}

// The documentation asks for a flag between what the scalar unit stores and vector instructions. Operators in use have a barrier of
// the vector pipe alone there (cann-ops: icamax, icamin, isamax, isamin): it counts, in favour of the kernel.
void CoreRaces::barrier(Pipe pipe) {
    clocks_.barrier(pipe);
    if (pipe == Pipe::V) clocks_.learn(Pipe::V, clocks_.when_done(Pipe::S));
}

// Whether nothing orders `now` after `earlier`. Where the compiler inserts synchronisation, it takes effect here.
bool CoreRaces::races(const Access &now, const Access &earlier, Hazard hazard) {
    const bool commute = now.way != 0 && now.way == earlier.way;
    if (earlier.index == 0 || commute || clocks_.knows(now.pipe, earlier.pipe, earlier.index)) return false;
    if (now.pipe == earlier.pipe) {
        // A pipe takes its instructions in order: a later one does not overtake the reads of an earlier one, nor do the repeats
        // of one instruction overtake each other.
        const bool may_overtake = now.early && now.index != earlier.index;
        return hazard != Hazard::WriteAfterRead && may_overtake && !now.gaps && !earlier.gaps;
    }
    if (now.unit_flag && earlier.unit_flag) return false;
    if (earlier.pipe == Pipe::S && hazard == Hazard::WriteAfterRead) return false;      // what it loaded, it has
    if (!auto_sync_ || (now.pipe != Pipe::S && earlier.pipe != Pipe::S) || now.by_pointer || earlier.by_pointer) return true;
    clocks_.learn(now.pipe, clocks_.when_done(earlier.pipe));
    return false;
}

std::optional<Overlap> CoreRaces::read(Map &map, const Access &now, uint64_t begin, uint64_t end) {
    std::optional<Overlap> found;
    map.update(begin, end, [&](State &state, uint64_t from, uint64_t to) {
        if (!found && races(now, state.write, Hazard::ReadAfterWrite)) found = Overlap{state.write.where, from, to};
        state.reads[static_cast<size_t>(now.pipe)] = now;
    });
    return found;
}

const CoreRaces::Access *CoreRaces::before_write(const State &state, const Access &now) {
    for (const Access &earlier : state.reads) {
        if (earlier.index != 0 && races(now, earlier, Hazard::WriteAfterRead)) return &earlier;
    }
    return races(now, state.write, Hazard::WriteAfterWrite) ? &state.write : nullptr;
}

std::optional<Overlap> CoreRaces::write(Map &map, const Access &now, uint64_t begin, uint64_t end) {
    std::optional<Overlap> found;
    map.visit(begin, end, [&](const State &state, uint64_t from, uint64_t to) {
        const Access *earlier = before_write(state, now);
        if (earlier != nullptr) found = Overlap{earlier->where, from, to};
        return earlier == nullptr;
    });
    State state;
    state.write = now;
    if (!found) map.assign(begin, end, state);
    return found;
}

// Whether an instruction may start while earlier ones of its pipe still write: a later one does not wait by itself.
bool CoreRaces::starts_early(const Record &record, Pipe pipe) const {
    constexpr uint32_t kTilesInTurn = 10;   // a Mmad of so many tiles finds the sums of the one before it
    if (pipe == Pipe::M) return (record.flag_id & kAccumulates) != 0 && record.repeats < kTilesInTurn;
    return (pipe == Pipe::V && !auto_sync_) || pipe == Pipe::MTE2 || pipe == Pipe::MTE3;
}

CoreRaces::Access CoreRaces::describe(const Entry &entry, uint64_t where) {
    const Record &record = entry.record;
    const Pipe pipe = info(record.op).pipe;
    if (pipe == Pipe::V && record.source_pipe == kInsideCall) clocks_.barrier(pipe);
    Access now;
    now.index = clocks_.issue(pipe);
    now.pipe = pipe;
    now.way = atomic_way(record);
    now.by_pointer = record.op == Op::ScalarAccess && (record.flag_id & kFromPointer) != 0;
    now.early = starts_early(record, pipe);
    now.unit_flag = (pipe == Pipe::M || pipe == Pipe::FIX) && (record.flag_id & kUnitFlag) != 0;
    now.gaps = leaves_gaps(record, entry.operands[0]);
    now.where = where;
    return now;
}

std::optional<Overlap> CoreRaces::operand(const Entry &entry, uint32_t index, bool writes, const Access &now) {
    const auto space = static_cast<Space>(entry.operands[index].space);
    const bool global = space == Space::Gm;
    const bool inside_call = entry.record.source_pipe == kInsideCall;
    const bool kernels_own = global || space == Space::Ub || (space == Space::L1 && (entry.record.flag_id & kKernelsL1) != 0);
    if (inside_call && !kernels_own) return std::nullopt;
    Map &map = maps_[static_cast<size_t>(space)];
    std::optional<Overlap> found;
    for_each_run(entry, index, [&](uint64_t begin, uint64_t end) {
        if (found || (global && memory_.ignored(begin, end))) return;
        found = writes ? write(map, now, begin, end) : read(map, now, begin, end);
        if (found) found->space = space;
    });
    if (global) prune(map);
    return found;
}

// It takes the place of what an earlier instruction left: these come in order, and the scalar unit has what it read.
void CoreRaces::set_register(const Operand &result, const Access &now) {
    State state;
    state.write = now;
    maps_[result.space].assign(result.address, result.address + result.extent_bytes, state);
}

// What it reads comes before what it writes.
std::optional<Overlap> CoreRaces::access(const Entry &entry, uint64_t where) {
    const Access now = describe(entry, where);
    if (sets_register(entry.record)) set_register(register_set_by(entry.record), now);
    std::optional<Overlap> found;
    for (const Role role : {Role::Read, Role::Written}) {
        for (uint32_t i = 0; i < entry.record.operands && !found; ++i) {
            if (role_of(entry.record, i) == role) found = operand(entry, i, role == Role::Written, now);
        }
    }
    return found;
}

// Neither a copy nor the scalar unit can race with it any more.
bool CoreRaces::settled(const State &state) const {
    const auto known = [&](const Access &access) {
        const auto by = [&](Pipe pipe) { return clocks_.knows(pipe, access.pipe, access.index); };
        const bool by_copies = by(Pipe::MTE2) && by(Pipe::MTE3) && (!cube_ || by(Pipe::FIX));
        return access.index == 0 || (by_copies && (auto_sync_ || by(Pipe::S)));
    };
    return known(state.write) && std::all_of(state.reads.begin(), state.reads.end(), known);
}

// Global memory is large: what can no longer matter is forgotten whenever the map has doubled.
void CoreRaces::prune(Map &map) {
    if (map.size() < prune_at_) return;
    map.forget([&](const State &state) { return settled(state); });
    prune_at_ = std::max<size_t>(2 * map.size(), 4096);
}

}  // namespace asim
