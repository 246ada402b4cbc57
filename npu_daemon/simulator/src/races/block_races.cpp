#include "asim/races/block_races.h"

#include "asim/races/footprint.h"

namespace asim {

// The access of another block that nothing orders before one of `block`: those that only add to what is there commute.
const BlockRaces::Touch *BlockRaces::conflict(const State &state, Kind kind, uint32_t block) {
    const auto other = [block](const Touch &touch) { return touch.block != kNobody && touch.block != block; };
    if (other(state.write)) return &state.write;
    for (const Touch *touch : {&state.atomics.first, &state.atomics.second}) {
        if (kind != Kind::Atomic && other(*touch)) return touch;
    }
    for (const Touch *touch : {&state.reads.first, &state.reads.second}) {
        if (kind != Kind::Read && other(*touch)) return touch;
    }
    return nullptr;
}

std::optional<Overlap> BlockRaces::check(const Touch &now, Kind kind, uint64_t begin, uint64_t end) const {
    std::optional<Overlap> found;
    map_.visit(begin, end, [&](const State &state, uint64_t from, uint64_t to) {
        const Touch *earlier = conflict(state, kind, now.block);
        if (earlier != nullptr) found = Overlap{earlier->where, from, to, earlier->block};
        return earlier == nullptr;
    });
    return found;
}

void BlockRaces::remember(const Touch &now, Kind kind, uint64_t begin, uint64_t end) {
    if (kind == Kind::Write) {
        State state;
        state.write = now;
        map_.assign(begin, end, state);
    } else {
        map_.update(begin, end, [&](State &state) { (kind == Kind::Read ? state.reads : state.atomics).add(now); });
    }
}

std::optional<Overlap> BlockRaces::next(const Entry &entry, uint32_t block, uint64_t where) {
    const Touch now{block, where};
    std::optional<Overlap> found;
    for (uint32_t i = 0; i < entry.record.operands && !found; ++i) {
        const Role role = role_of(entry.record, i);
        if (role == Role::Ignored || entry.operands[i].space != static_cast<uint64_t>(Space::Gm)) continue;
        const Kind kind = role == Role::Read ? Kind::Read : is_atomic(entry.record) ? Kind::Atomic : Kind::Write;
        for_each_run(entry, i, [&](uint64_t begin, uint64_t end) {
            if (found || memory_.constant(begin, end)) return;
            found = check(now, kind, begin, end);
            if (!found) remember(now, kind, begin, end);
        });
    }
    return found;
}

}  // namespace asim
