#include "asim/races/find_race.h"

#include <array>
#include <memory>
#include <vector>

#include "asim/races/block_races.h"
#include "asim/races/core_races.h"
#include "asim/races/footprint.h"

namespace asim {

namespace {

// One block on its way through the trace.
struct Walk {
    Walk(const Trace &trace, const SharedMemory &memory, bool auto_sync, uint32_t index)
        : block(index), cursor(trace, index), core(auto_sync, memory) {}
    uint32_t block;
    Cursor cursor;
    CoreRaces core;
    bool waits = false;
    std::array<uint32_t, kCrossCoreFlags> meetings{};   // by flag: set for all cores, not yet waited for

    // Whether the block stops here until all others have come: flags of smaller circles order nothing between blocks.
    bool meets_all(const Record &record) {
        if (record.op == Op::CrossCoreSet && record.repeats == static_cast<uint32_t>(CrossCoreMode::AllOfKind)) {
            ++meetings[record.flag_id];
        }
        if (record.op != Op::CrossCoreWait) return record.op == Op::SyncAll;
        if (meetings[record.flag_id] == 0) return false;
        --meetings[record.flag_id];
        return true;
    }
};

bool touches(const Entry &entry, Space space, uint64_t begin, uint64_t end, Role role) {
    bool found = false;
    for (uint32_t i = 0; i < entry.record.operands; ++i) {
        if (entry.operands[i].space != static_cast<uint64_t>(space) || role_of(entry.record, i) != role) continue;
        for_each_run(entry, i, [&](uint64_t from, uint64_t to) { found |= from < end && begin < to; });
    }
    return found;
}

// Vector cores, each for itself and all together. Launches with cube cores exchange flags that order single pairs of
// cores, and what a cube core does within itself is up to the kernel and the library: neither is looked at.
class Finder {
public:
    Finder(const Trace &trace, const SharedMemory &memory, bool auto_sync)
        : trace_(trace), memory_(memory), auto_sync_(auto_sync), mixed_(trace.composition().cubes > 0), blocks_(memory) {}

    // Blocks run as they did in execution: one after another up to where they meet.
    std::optional<Race> run() {
        std::vector<std::unique_ptr<Walk>> waiting;
        for (uint32_t block = 0; block < trace_.block_count(); ++block) {
            if (mixed_ && block % trace_.composition().cores() == 0) continue;
            auto walk = std::make_unique<Walk>(trace_, memory_, auto_sync_, block);
            if (auto race = proceed(*walk)) return race;
            if (walk->waits) waiting.push_back(std::move(walk));
        }
        while (!waiting.empty()) {
            blocks_.all_met();
            std::vector<std::unique_ptr<Walk>> still;
            for (auto &walk : waiting) {
                if (auto race = proceed(*walk)) return race;
                if (walk->waits) still.push_back(std::move(walk));
            }
            waiting = std::move(still);
        }
        return std::nullopt;
    }

private:
    std::optional<Race> proceed(Walk &walk) {
        walk.waits = false;
        for (Entry entry; walk.cursor.next(entry);) {
            const uint64_t where = trace_.offset_of(walk.cursor.last());
            if (auto overlap = walk.core.next(entry, where)) {
                overlap->block = walk.block;
                return describe(*overlap, walk.block, entry, where);
            }
            if (mixed_) continue;
            if (auto overlap = blocks_.next(entry, walk.block, where)) return describe(*overlap, walk.block, entry, where);
            if (walk.meets_all(entry.record)) {
                walk.waits = true;
                break;
            }
        }
        return std::nullopt;
    }

    std::optional<Race> describe(const Overlap &overlap, uint32_t block, const Entry &now, uint64_t where) const {
        Race race;
        race.begin = overlap.begin;
        race.end = overlap.end;
        for (const Space space : {Space::Ub, Space::Gm}) {
            if (touches(now, space, race.begin, race.end, Role::Read) || touches(now, space, race.begin, race.end, Role::Written)) {
                race.space = space;
            }
        }
        race.second = side(block, where, race, true);
        race.first = side(overlap.block, overlap.earlier, race, false);
        return race;
    }

    // The record of `block` at `where`, or the first one after it that is part of the race: neighbours share an entry.
    Side side(uint32_t block, uint64_t where, const Race &race, bool second) const {
        Side side;
        side.block = block;
        Cursor cursor(trace_, block);
        for (Entry entry; cursor.next(entry); ++side.ordinal) {
            if (trace_.offset_of(cursor.last()) < where) continue;
            side.record = entry.record;
            side.writes = touches(entry, race.space, race.begin, race.end, Role::Written);
            const bool reads = touches(entry, race.space, race.begin, race.end, Role::Read);
            if (side.writes || (reads && (second || race.second.writes))) break;
        }
        return side;
    }

    const Trace &trace_;
    const SharedMemory &memory_;
    bool auto_sync_;
    bool mixed_;
    BlockRaces blocks_;
};

}  // namespace

std::optional<Race> find_race(const Trace &trace, const SharedMemory &memory, bool auto_sync) {
    return Finder(trace, memory, auto_sync).run();
}

}  // namespace asim
