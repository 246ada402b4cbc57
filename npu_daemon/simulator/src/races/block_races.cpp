#include "asim/races/block_races.h"

#include "asim/races/footprint.h"

namespace asim {

namespace {

constexpr size_t kMostOthers = 256;     // of one piece: more than there are cores, which only launches without flags can have

}  // namespace

// The access that nothing orders before `now`: those that only add to what is there commute.
const BlockRaces::Touch *BlockRaces::conflict(const State &state, const Touch &now, const Knowledge &known) const {
    const auto unordered = [&](const Touch &touch) {
        if (touch.core == kNobody) return false;
        if (touch.core == now.core) return touch.cached && now.pipe != Pipe::S;
        return touch.cached || !known.covers(touch.core, touch.pipe, touch.index);
    };
    if (unordered(state.write)) return &state.write;
    for (const Touch &touch : state.others) {
        if (touch.kind != now.kind && unordered(touch)) return &touch;
        if (now.kind == Kind::Write && unordered(touch)) return &touch;
    }
    return nullptr;
}

std::optional<Overlap> BlockRaces::check(const Touch &now, const Knowledge &known, uint64_t begin, uint64_t end) const {
    std::optional<Overlap> found;
    map_.visit(begin, end, [&](const State &state, uint64_t from, uint64_t to) {
        const Touch *earlier = conflict(state, now, known);
        if (earlier != nullptr) found = Overlap{earlier->where, from, to, earlier->core, Space::Gm, earlier->cached};
        return earlier == nullptr;
    });
    return found;
}

// A later access of the same pipe is over later. Where cores meet all at once or never, two of different cores are enough:
// at least one of them is not the core that comes next.
void BlockRaces::add(std::vector<Touch> &others, const Touch &now) const {
    size_t same_kind = 0;
    for (Touch &touch : others) {
        if (touch.kind != now.kind) continue;
        if (touch.core == now.core && touch.pipe == now.pipe) {
            touch = now;
            return;
        }
        same_kind += touch.core != now.core ? 1 : 0;
    }
    if (same_kind < (exact_ ? kMostOthers : 2)) others.push_back(now);
}

void BlockRaces::remember(const Touch &now, uint64_t begin, uint64_t end) {
    if (now.kind == Kind::Write) {
        State state;
        state.write = now;
        map_.assign(begin, end, state);
    } else {
        map_.update(begin, end, [&](State &state) { add(state.others, now); });
    }
}

// What the core stored in the line, or in any, is in global memory now.
void BlockRaces::write_back(const Entry &entry, const Touch &now) {
    const auto clean = [&](State &state) {
        if (state.write.core != now.core || !state.write.cached) return;
        state.write.cached = false;
        state.write.index = now.index;
    };
    if (entry.record.operands == 0) {
        map_.update_all(clean);
        return;
    }
    const uint64_t address = entry.operands[0].address;
    map_.update(address, address / kScalarLineBytes * kScalarLineBytes + kScalarLineBytes, clean);
}

std::optional<Overlap> BlockRaces::next(const Entry &entry, uint32_t core, uint32_t index, const Knowledge &known, uint64_t where) {
    Touch now{core, index, info(entry.record.op).pipe, Kind::Read, false, exact_, where};
    if (entry.record.op == Op::CleanCache) {
        write_back(entry, now);
        return std::nullopt;
    }
    std::optional<Overlap> found;
    for (uint32_t i = 0; i < entry.record.operands && !found; ++i) {
        const Role role = role_of(entry.record, i);
        if (role == Role::Ignored || entry.operands[i].space != static_cast<uint64_t>(Space::Gm)) continue;
        now.kind = role == Role::Read ? Kind::Read : is_atomic(entry.record) ? Kind::Atomic : Kind::Write;
        now.cached = now.kind == Kind::Write && now.pipe == Pipe::S;
        for_each_run(entry, i, [&](uint64_t begin, uint64_t end) {
            if (found || memory_.ignored(begin, end)) return;
            found = check(now, known, begin, end);
            if (!found) remember(now, begin, end);
        });
    }
    return found;
}

void BlockRaces::all_met() {
    map_.forget([](const State &state) { return !state.write.cached; });
    map_.update_all([](State &state) { state.others.clear(); });
}

}  // namespace asim
