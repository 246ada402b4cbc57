#include "asim/races/block_races.h"

#include "asim/races/footprint.h"

namespace asim {

namespace {

constexpr size_t kMostOthers = 256;     // of one piece: more than there are cores, which only launches without flags can have

}  // namespace

// What lies in a data cache is there for its own scalar unit only.
bool BlockRaces::unordered(const Touch &earlier, const Touch &now, const Knowledge &known) {
    if (earlier.core == kNobody) return false;
    if (earlier.core == now.core) return earlier.cached && now.pipe != Pipe::S;
    return earlier.cached || !known.covers(earlier.core, earlier.pipe, earlier.index);
}

// The access that nothing orders before `now`. Reads commute, and so do those that add to what is there.
const BlockRaces::Touch *BlockRaces::conflict(const State &state, const Touch &now, const Knowledge &known) {
    if (unordered(state.write, now, known)) return &state.write;
    for (const Touch &touch : state.others) {
        const bool commute = now.kind != Kind::Write && touch.alike(now);
        if (!commute && unordered(touch, now, known)) return &touch;
    }
    return nullptr;
}

std::optional<Overlap> BlockRaces::check(const Touch &now, const Knowledge &known, uint64_t begin, uint64_t end) const {
    std::optional<Overlap> found;
    map_.visit(begin, end, [&](const State &state, uint64_t from, uint64_t to) {
        const Touch *earlier = conflict(state, now, known);
        const Reason reason = earlier != nullptr && earlier->cached ? Reason::Unwritten : Reason::Unordered;
        if (earlier != nullptr) found = Overlap{earlier->where, from, to, earlier->core, Space::Gm, reason};
        return earlier == nullptr;
    });
    return found;
}

// A later access of the same pipe is over later. Where cores meet all at once or never, two of different cores are enough:
// at least one of them is not the core that comes next.
void BlockRaces::add(std::vector<Touch> &others, const Touch &now) const {
    size_t same_kind = 0;
    for (Touch &touch : others) {
        if (!touch.alike(now)) continue;
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
        map_.update(begin, end, [&](State &state, uint64_t, uint64_t) { add(state.others, now); });
    }
}

// What the core stored in the line, or in any, is in global memory now.
void BlockRaces::write_back(const Entry &entry, const Touch &now) {
    const auto clean = [&](State &state, uint64_t = 0, uint64_t = 0) {
        if (state.write.core != now.core || !state.write.cached) return;
        state.write.cached = false;
        state.write.index = now.index;
    };
    if (entry.record.operands == 0) {
        caches_.clean(now.core, now.index, std::nullopt);
        map_.update_all(clean);
        return;
    }
    const uint64_t address = entry.operands[0].address;
    caches_.clean(now.core, now.index, address);
    map_.update(address, address / kScalarLineBytes * kScalarLineBytes + kScalarLineBytes, clean);
}

// What others write in a line that is being loaded, and nothing orders before.
DataCaches::Newer BlockRaces::unseen(const Touch &now, const Knowledge &known, uint64_t line) const {
    DataCaches::Newer newer;
    if (caches_.holds(now.core, line)) return newer;
    map_.visit(line, line + kScalarLineBytes, [&](const State &state, uint64_t from, uint64_t to) {
        const auto note = [&](const Touch &touch) {
            if (touch.core == now.core || !unordered(touch, now, known)) return;
            newer = {newer.parts | DataCaches::parts_of(line, from, to), {touch.core, touch.where}};
        };
        note(state.write);
        for (const Touch &touch : state.others) {
            if (touch.kind == Kind::Atomic) note(touch);
        }
        return true;
    });
    return newer;
}

std::optional<Overlap> BlockRaces::through_caches(const Touch &now, const Knowledge &known, bool past_cache, uint64_t begin, uint64_t end) {
    const DataCaches::Origin origin{now.core, now.where};
    const bool by_cache = now.pipe == Pipe::S && !past_cache;
    if (now.kind != Kind::Read) {
        if (const auto lost = caches_.written(origin, by_cache, known, begin, end)) return lost;
    }
    if (!by_cache) return std::nullopt;
    const auto newer = unseen(now, known, DataCaches::line_of(begin));
    return now.kind == Kind::Read ? caches_.load(origin, begin, end, newer) : caches_.store(origin, begin, end, newer);
}

// A store that changes nothing is in no race for its own bytes, but its line is written back whole as any other.
std::optional<Overlap> BlockRaces::keep(const Touch &now, const Knowledge &known, const Operand &stored) {
    const uint64_t begin = stored.address, end = begin + stored.extent_bytes;
    if (memory_.ignored(begin, end)) return std::nullopt;
    return caches_.store({now.core, now.where}, begin, end, unseen(now, known, DataCaches::line_of(begin)));
}

std::optional<Overlap> BlockRaces::touch(const Touch &now, const Knowledge &known, bool past_cache, uint64_t begin, uint64_t end) {
    if (memory_.ignored(begin, end)) return std::nullopt;
    auto found = check(now, known, begin, end);
    if (!found) found = through_caches(now, known, past_cache, begin, end);
    if (!found) remember(now, begin, end);
    return found;
}

void BlockRaces::note_rewritten(const Entry &entry, const Touch &now, const Knowledge &known) {
    for_each_run(entry, 0, [&](uint64_t begin, uint64_t end) {
        map_.visit(begin, end, [&](const State &state, uint64_t from, uint64_t to) {
            const Touch &earlier = state.write;
            if (rewritten_ || earlier.core == now.core || !unordered(earlier, now, known)) return !rewritten_;
            rewritten_ = {Overlap{earlier.where, from, to, earlier.core, Space::Gm, Reason::SameBytes}, {now.core, now.where}};
            return false;
        });
    });
}

std::optional<Overlap> BlockRaces::next(const Entry &entry, uint32_t core, uint32_t index, const Knowledge &known, uint64_t where) {
    const Record &record = entry.record;
    if (record.operands == 0 && record.op != Op::CleanCache) return std::nullopt;
    Touch now{core, index, info(record.op).pipe, Kind::Read, atomic_way(record), false, exact_, where};
    if (record.op == Op::CleanCache) {
        write_back(entry, now);
        return std::nullopt;
    }
    if (keeps_value(record)) return keep(now, known, entry.operands[0]);
    if (names_changes(record) && !rewritten_) note_rewritten(entry, now, known);
    const bool past_cache = record.op == Op::ScalarAccess && (record.flag_id & kPastCache) != 0;
    std::optional<Overlap> found;
    for (uint32_t i = 0; i < record.operands && !found; ++i) {
        if (entry.operands[i].space != static_cast<uint64_t>(Space::Gm)) continue;
        const Role role = role_of(record, i);
        if (role == Role::Ignored) continue;
        now.kind = role == Role::Read ? Kind::Read : is_atomic(record) ? Kind::Atomic : Kind::Write;
        now.cached = now.kind == Kind::Write && now.pipe == Pipe::S && !past_cache;
        for_each_run(entry, i, [&](uint64_t begin, uint64_t end) {
            if (!found) found = touch(now, known, past_cache, begin, end);
        });
    }
    return found;
}

void BlockRaces::all_met() {
    caches_.all_met();
    map_.forget([](const State &state) { return !state.write.cached; });
    map_.update_all([](State &state) { state.others.clear(); });
}

}  // namespace asim
