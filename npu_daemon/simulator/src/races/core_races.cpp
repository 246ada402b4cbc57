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
        case Op::CrossCoreSet: clocks_.set_cross_core(record); break;
        case Op::CrossCoreWait: clocks_.wait_cross_core(record); break;
        default: break;
    }
    return record.operands > 0 ? access(entry, where) : std::nullopt;
}

// Whether nothing orders `now` after `earlier`. Where the compiler inserts synchronisation, it takes effect here.
bool CoreRaces::races(const Access &now, const Access &earlier, Hazard hazard) {
    if (earlier.index == 0 || (now.atomic && earlier.atomic) || clocks_.knows(now.pipe, earlier.pipe, earlier.index)) return false;
    if (now.pipe == earlier.pipe) {
        // A pipe takes its instructions in order: a later one does not overtake the reads of an earlier one.
        if (hazard == Hazard::WriteAfterRead || now.pipe == Pipe::S) return false;
        if (now.pipe == Pipe::V && auto_sync_) return false;
        return now.pipe == Pipe::V || now.pipe == Pipe::MTE2 || now.pipe == Pipe::MTE3;
    }
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
        if (earlier != nullptr) found = Overlap{earlier->where, from, to, 0};
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

std::optional<Overlap> CoreRaces::access(const Entry &entry, uint64_t where) {
    const Record &record = entry.record;
    const Pipe pipe = info(record.op).pipe;
    if (pipe == Pipe::V && record.source_pipe == kInsideCall) clocks_.barrier(pipe);
    const bool by_pointer = record.op == Op::ScalarAccess && (record.flag_id & kFromPointer) != 0;
    const Access now{clocks_.issue(pipe), pipe, is_atomic(record), by_pointer, where};
    std::optional<Overlap> found;
    const auto each = [&](Role role, auto f) {
        for (uint32_t i = 0; i < record.operands; ++i) {
            if (role_of(record, i) != role) continue;
            const bool gm = entry.operands[i].space == static_cast<uint64_t>(Space::Gm);
            for_each_run(entry, i, [&](uint64_t begin, uint64_t end) {
                if (!found && !(gm && memory_.constant(begin, end))) f(maps_[entry.operands[i].space], begin, end);
            });
        }
    };
    for (const Role role : {Role::Read, Role::Written}) {
        const bool writes = role == Role::Written;
        each(role, [&](const Map &map, uint64_t begin, uint64_t end) { found = check(map, now, writes, begin, end); });
    }
    for (const Role role : {Role::Read, Role::Written}) {
        const bool writes = role == Role::Written;
        each(role, [&](Map &map, uint64_t begin, uint64_t end) { remember(map, now, writes, begin, end); });
    }
    prune(maps_[static_cast<size_t>(Space::Gm)]);
    return found;
}

// Neither a copy nor the scalar unit can race with it any more.
bool CoreRaces::settled(const State &state) const {
    const auto known = [&](const Access &access) {
        const auto by = [&](Pipe pipe) { return clocks_.knows(pipe, access.pipe, access.index); };
        return access.index == 0 || (by(Pipe::MTE2) && by(Pipe::MTE3) && (auto_sync_ || by(Pipe::S)));
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
