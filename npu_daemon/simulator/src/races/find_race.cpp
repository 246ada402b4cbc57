#include "asim/races/find_race.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <vector>

#include "asim/races/block_races.h"
#include "asim/races/core_races.h"
#include "asim/races/flag_board.h"
#include "asim/races/footprint.h"

namespace asim {

namespace {

// One core on its way through the trace.
struct Walk {
    Walk(const Trace &trace, const SharedMemory &memory, bool auto_sync, uint32_t index)
        : core(index), cursor(trace, index), races(cube(trace, index), auto_sync, memory) {}
    static bool cube(const Trace &trace, uint32_t index) {
        return index % trace.composition().cores() < trace.composition().cubes;
    }

    uint32_t core;
    Cursor cursor;
    CoreRaces races;
    Knowledge known;            // of other cores
    Entry entry{};              // what it has come to
    bool waits = false;         // there, for others
    bool ended = false;
};

bool touches(const Entry &entry, Space space, uint64_t begin, uint64_t end, Role role) {
    const Record &record = entry.record;
    bool found = space == Space::Register && role == Role::Written && sets_register(record) && register_set_by(record).address == begin;
    for (uint32_t i = 0; i < record.operands; ++i) {
        if (entry.operands[i].space != static_cast<uint64_t>(space) || role_of(record, i) != role) continue;
        for_each_run(entry, i, [&](uint64_t from, uint64_t to) { found |= from < end && begin < to; });
    }
    return found;
}

// Each core for itself, and all together.
class Finder {
public:
    Finder(const Trace &trace, const SharedMemory &memory, bool auto_sync)
        : trace_(trace), memory_(memory), auto_sync_(auto_sync), flags_(trace.composition(), trace.block_count()), blocks_(memory) {}

    // Cores run as they did in execution: group by group, each up to where it waits for others.
    Findings run() {
        Findings findings;
        findings.race = first_race();
        const auto &again = blocks_.rewritten();
        if (again) findings.rewritten = describe(again->first, again->second.core, again->second.where);
        return findings;
    }

private:
    std::optional<Race> first_race() {
        const uint32_t cores = trace_.composition().cores();
        std::vector<std::unique_ptr<Walk>> all;
        for (uint32_t group = 0; group < trace_.block_count(); group += cores) {
            std::vector<std::unique_ptr<Walk>> own;
            for (uint32_t i = 0; i < cores; ++i) own.push_back(std::make_unique<Walk>(trace_, memory_, auto_sync_, group + i));
            if (auto race = go_on(own)) return race;
            std::move(own.begin(), own.end(), std::back_inserter(all));
        }
        if (auto race = go_on(all)) return race;
        if (!all.empty()) throw std::runtime_error("malformed trace: a core waits for others that never come");
        return std::nullopt;
    }

    // Lets each of the cores go on as long as any can; drops those that end.
    std::optional<Race> go_on(std::vector<std::unique_ptr<Walk>> &walks) {
        for (bool progress = true; progress;) {
            progress = false;
            for (auto &walk : walks) {
                if (walk->waits && !flags_.arrived(walk->core, walk->entry.record)) continue;
                progress = true;
                if (auto race = proceed(*walk)) return race;
            }
            walks.erase(std::remove_if(walks.begin(), walks.end(), [](const auto &walk) { return walk->ended; }), walks.end());
        }
        return std::nullopt;
    }

    std::optional<Race> proceed(Walk &walk) {
        if (walk.waits) pass(walk);
        while (walk.cursor.next(walk.entry)) {
            const Entry &entry = walk.entry;
            const uint64_t where = walk.cursor.ordinal();
            if (auto overlap = walk.races.next(entry, where)) {
                overlap->block = walk.core;
                return describe(*overlap, walk.core, where);
            }
            const Pipe pipe = info(entry.record.op).pipe;
            if (pipe == Pipe::V) continue;      // it meets other cores nowhere
            const uint32_t index = walk.races.issued(pipe);
            if (auto overlap = blocks_.next(entry, walk.core, index, walk.known, where)) {
                return describe(*overlap, walk.core, where);
            }
            if (!stops(walk)) continue;
            walk.waits = true;
            return std::nullopt;
        }
        walk.ended = true;
        return std::nullopt;
    }

    // Takes part in the exchange of flags; returns whether the core has to wait for others now.
    bool stops(Walk &walk) {
        const Record &record = walk.entry.record;
        if (record.op == Op::CrossCoreSet) {
            blocks_.tell_apart();
            flags_.set(walk.core, record, is_answer(walk) ? told_by(walk, walk.races.everything())
                                                          : told_by(walk, walk.races.when_done(static_cast<Pipe>(record.source_pipe))));
            return false;
        }
        if (record.op == Op::SyncAll) flags_.set(walk.core, record, meets_everyone(record) ? Knowledge{} : told_by(walk, walk.races.everything()));
        const bool waits = record.op == Op::SyncAll || record.op == Op::CrossCoreWait;
        if (!waits || !flags_.arrived(walk.core, record)) return waits;
        if (record.op == Op::SyncAll && meets_everyone(record)) blocks_.all_met();  // this core is the last to come
        pass(walk);
        return false;
    }

    // The wait of a core ends.
    void pass(Walk &walk) {
        const Record &record = walk.entry.record;
        const auto told = flags_.take(walk.core, record);
        walk.waits = false;
        walk.known.add(*told);
        walk.races.learn(walk.known.of(walk.core));
        if (record.op == Op::SyncAll && meets_everyone(record)) walk.known.clear();
    }

    // What others may know once what `done` counts is over.
    static Knowledge told_by(const Walk &walk, const Clock &done) {
        Knowledge told = walk.known;
        told.add(walk.core, done);
        return told;
    }

    // The Matmul object answers a vector core when a product is where it belongs: all that led to it is over.
    bool is_answer(const Walk &walk) const {
        const bool direct = walk.entry.record.repeats == static_cast<uint32_t>(CrossCoreMode::Direct);
        return direct && Walk::cube(trace_, walk.core);
    }

    bool meets_everyone(const Record &record) const {
        const Composition &composition = trace_.composition();
        return record.flag_id == kSyncAllKinds || composition.cubes == 0 || composition.vectors == 0;
    }

    std::optional<Race> describe(const Overlap &overlap, uint32_t block, uint64_t where) const {
        Race race;
        race.begin = overlap.begin;
        race.end = overlap.end;
        race.reason = overlap.reason;
        race.space = overlap.space;
        race.second = side(block, where, race, true);
        race.first = side(overlap.block, overlap.earlier, race, false);
        return race;
    }

    // The record of `block` at `where`, or the first one after it that is part of the race: neighbours share an entry.
    Side side(uint32_t block, uint64_t where, const Race &race, bool second) const {
        Side side;
        side.block = block;
        side.cube = Walk::cube(trace_, block);
        Cursor cursor(trace_, block);
        for (Entry entry; cursor.next(entry); ++side.ordinal) {
            if (cursor.ordinal() < where) continue;
            side.record = entry.record;
            side.writes = touches(entry, race.space, race.begin, race.end, Role::Written);
            if (second && race.reason == Reason::SameBytes) {
                side.writes = true;
                break;
            }
            const bool reads = touches(entry, race.space, race.begin, race.end, Role::Read);
            if (side.writes || (reads && (second || race.second.writes))) break;
        }
        return side;
    }

    const Trace &trace_;
    const SharedMemory &memory_;
    bool auto_sync_;
    FlagBoard flags_;
    BlockRaces blocks_;
};

}  // namespace

Findings find_race(const Trace &trace, const SharedMemory &memory, bool auto_sync) {
    return Finder(trace, memory, auto_sync).run();
}

}  // namespace asim
