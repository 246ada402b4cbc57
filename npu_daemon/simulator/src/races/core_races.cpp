#include "asim/races/core_races.h"

#include "asim/races/footprint.h"

namespace asim {

std::optional<Overlap> CoreRaces::next(const Entry &entry, uint64_t where) {
    const Record &record = entry.record;
    switch (record.op) {
        case Op::SetFlag: clocks_.set_flag(record); break;
        case Op::WaitFlag: clocks_.wait_flag(record); break;
        case Op::PipeBarrier: clocks_.barrier(static_cast<Pipe>(record.target_pipe)); break;
        case Op::SyncAll: clocks_.barrier(Pipe::ALL); break;
        case Op::CleanCache: clocks_.issue(Pipe::S); return std::nullopt;
        default: break;
    }
    return record.operands > 0 ? access(entry, where) : std::nullopt;
}

// Whether nothing orders `now` after `earlier`. Where the compiler inserts synchronisation, it takes effect here.
bool CoreRaces::races(const Access &now, const Access &earlier, Hazard hazard) {
    if (earlier.index == 0 || (now.atomic && earlier.atomic) || clocks_.knows(now.pipe, earlier.pipe, earlier.index)) return false;
    if (now.pipe == earlier.pipe) {
        // A pipe takes its instructions in order: a later one does not overtake the reads of an earlier one.
        return hazard != Hazard::WriteAfterRead && now.early && !now.gaps && !earlier.gaps;
    }
    if (now.unit_flag && earlier.unit_flag) return false;
    // What the scalar unit loaded, it has; and its stores come before vector instructions that it issues afterwards:
    // the documentation asks for a flag here, too, but operators in use (cann-ops: icamax, ctc_loss_v3_grad) have none.
    if (earlier.pipe == Pipe::S && (now.pipe == Pipe::V || hazard == Hazard::WriteAfterRead)) return false;
    if (!auto_sync_ || (now.pipe != Pipe::S && earlier.pipe != Pipe::S) || now.by_pointer || earlier.by_pointer) return true;
    clocks_.learn(now.pipe, clocks_.when_done(earlier.pipe));
    return false;
}

std::optional<Overlap> CoreRaces::check(const Map &map, const Access &now, bool writes, uint64_t begin, uint64_t end) {
    std::optional<Overlap> found;
    map.visit(begin, end, [&](const State &state, uint64_t from, uint64_t to) {
        const Access *earlier = nullptr;
        for (uint32_t pipe = 0; writes && earlier == nullptr && pipe < kPipeCount; ++pipe) {
            if (races(now, state.reads[pipe], Hazard::WriteAfterRead)) earlier = &state.reads[pipe];
        }
        const Hazard hazard = writes ? Hazard::WriteAfterWrite : Hazard::ReadAfterWrite;
        if (earlier == nullptr && races(now, state.write, hazard)) earlier = &state.write;
        if (earlier != nullptr) found = Overlap{earlier->where, from, to};
        return earlier == nullptr;
    });
    return found;
}

void CoreRaces::remember(Map &map, const Access &now, bool writes, uint64_t begin, uint64_t end) {
    if (writes) {
        State state;
        state.write = now;
        map.assign(begin, end, state);
    } else {
        map.update(begin, end, [&](State &state) { state.reads[static_cast<size_t>(now.pipe)] = now; });
    }
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
    now.atomic = is_atomic(record);
    now.by_pointer = record.op == Op::ScalarAccess && (record.flag_id & kFromPointer) != 0;
    now.early = starts_early(record, pipe);
    now.unit_flag = (pipe == Pipe::M || pipe == Pipe::FIX) && (record.flag_id & kUnitFlag) != 0;
    now.gaps = leaves_gaps(record, entry.operands[0]);
    now.where = where;
    return now;
}

std::optional<Overlap> CoreRaces::access(const Entry &entry, uint64_t where) {
    const Record &record = entry.record;
    const bool inside_call = record.source_pipe == kInsideCall;
    const Access now = describe(entry, where);
    std::optional<Overlap> found;
    const auto each = [&](Role role, auto f) {
        for (uint32_t i = 0; i < record.operands; ++i) {
            if (role_of(record, i) != role) continue;
            const auto space = static_cast<Space>(entry.operands[i].space);
            if (inside_call && space != Space::Gm && space != Space::Ub) continue;
            for_each_run(entry, i, [&](uint64_t begin, uint64_t end) {
                const bool ignored = space == Space::Gm && memory_.ignored(begin, end);
                if (!found && !ignored) f(space, begin, end);
            });
        }
    };
    for (const Role role : {Role::Read, Role::Written}) {
        const bool writes = role == Role::Written;
        each(role, [&](Space space, uint64_t begin, uint64_t end) {
            found = check(maps_[static_cast<size_t>(space)], now, writes, begin, end);
            if (found) found->space = space;
        });
    }
    for (const Role role : {Role::Read, Role::Written}) {
        const bool writes = role == Role::Written;
        each(role, [&](Space space, uint64_t begin, uint64_t end) {
            remember(maps_[static_cast<size_t>(space)], now, writes, begin, end);
        });
    }
    prune(maps_[static_cast<size_t>(Space::Gm)]);
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
