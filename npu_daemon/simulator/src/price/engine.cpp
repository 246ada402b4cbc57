#include "asim/timing/engine.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <stdexcept>

#include "asim/timing/earliest.h"
#include "asim/timing/meetings.h"

namespace asim {

namespace {

// Groups that can run at a time.
uint32_t resident_groups(const Composition &composition, const Chip &chip) {
    const double cubes = composition.cubes == 0 ? kNever : chip.aic_cores / composition.cubes;
    const double vectors = composition.vectors == 0 ? kNever : chip.aiv_cores / composition.vectors;
    return static_cast<uint32_t>(std::min(cubes, vectors));
}

// Groups that start at the same time.
uint32_t first_groups(const Trace &trace, const Chip &chip) {
    return std::min(trace.block_count() / trace.composition().cores(), resident_groups(trace.composition(), chip));
}

// A place holds the cores that one group of blocks runs on; core `i` of place `p` is number p * cores_each_ + i.
class Engine {
public:
    Engine(const Trace &trace, const Chip &chip, Timeline &timeline, Coverage &coverage)
        : trace_(trace), chip_(chip), memory_(chip), cores_each_(trace.composition().cores()),
          unclaimed_(trace.block_count() / cores_each_), unfinished_(unclaimed_) {
        const uint32_t places = first_groups(trace, chip);
        wakes_ = Earliest(places * cores_each_);
        cores_.reserve(places * cores_each_);
        for (uint32_t i = 0; i < places * cores_each_; ++i) cores_.emplace_back(Shared{chip, memory_, bank_conflicts_, coverage, timeline, places * cores_each_}, i);
        meetings_ = Meetings(trace.composition(), places);
        still_running_.resize(places);
    }

    L2Cache &cache() { return memory_.cache(); }

    Price run() {
        for (uint32_t place = 0; place < still_running_.size(); ++place) claim(place, 0);
        while (unfinished_ > 0) step();
        Price price;
        price.kernel_cycles = end_;
        price.blocks = trace_.block_count();
        price.composition = trace_.composition();
        price.task_us = head_us() + end_ / chip_.clock_mhz;
        for (const Core &core : cores_) price.cores.push_back(core.counters());
        return price;
    }

private:
    struct Wake {
        double time;
        uint32_t core;      // or place, where a group starts
        bool operator>(const Wake &other) const { return time != other.time ? time > other.time : core > other.core; }
    };

    bool on_cube_core(uint32_t core) const { return core % cores_each_ < trace_.composition().cubes; }

    // Before the first block starts, all cores are told, those of a group together: quant_group_matmul S0 leaves 19 us between
    // the mean core's time and the task's, with its imbalance, less than one core after another would take.
    double head_us() const {
        const Composition &group = trace_.composition();
        const double group_us = std::max(group.cubes * chip_.launch_per_cube_us, group.vectors * chip_.launch_per_block_us);
        return chip_.launch_us + group_us * static_cast<double>(still_running_.size());
    }

    void claim(uint32_t place, double now) {
        --unclaimed_;
        pending_starts_.push({launch_time(now), place});
    }

    void give_group(uint32_t place, double now) {
        const uint32_t first_block = next_group_++ * cores_each_;
        still_running_[place] = cores_each_;
        const bool first = first_block < cores_.size();
        const double wait_us = first ? chip_.block_fetch_us * cores_.size() : 0;
        const double entry_us = first ? chip_.block_start_us : chip_.block_restart_us;
        for (uint32_t i = 0; i < cores_each_; ++i) {
            Core &core = cores_[place * cores_each_ + i];
            core.start_block(Cursor(trace_, first_block + i), now, wait_us * chip_.clock_mhz, entry_us * chip_.clock_mhz);
        }
        for (uint32_t i = 0; i < cores_each_; ++i) visit(place * cores_each_ + i, now);
    }

    void visit(uint32_t index, double now) {
        Core &core = cores_[index];
        wakes_.set(index, core.advance(now));
        for (const RaisedFlag &raised : core.raised_for_others()) carry(index, raised, now);
        core.raised_for_others().clear();
        if (core.in_sync_all()) leave_sync_all_if_complete(core.syncs_all_kinds(), on_cube_core(index));
        if (core.block_done()) end_block(index);
    }

    void carry(uint32_t from, const RaisedFlag &raised, double now) {
        for (const Arrival &arrival : meetings_.add(from, raised)) {
            cores_[arrival.core].raise_cross_core(raised.flag, arrival.time);
            calls_.push({std::max(now, arrival.time), arrival.core});
        }
    }

    void end_block(uint32_t index) {
        const double now = cores_[index].scalar_time();
        end_ = std::max(end_, now);
        if (--still_running_[index / cores_each_] > 0) return;
        --unfinished_;
        if (unclaimed_ > 0) claim(index / cores_each_, now);
    }

    // When a group that a place is free for at `now` starts: cores are started one after another.
    double launch_time(double now) {
        const double start = std::max(now, next_launch_);
        next_launch_ = start + cores_each_ * chip_.block_stagger_us * chip_.clock_mhz;
        return start;
    }

    // All resident blocks, or all on that kind of core, have arrived: they go on together.
    void leave_sync_all_if_complete(bool all_kinds, bool cube) {
        double latest = 0;
        const auto meets = [&](uint32_t core) { return all_kinds || on_cube_core(core) == cube; };
        for (uint32_t i = 0; i < cores_.size(); ++i) {
            if (!meets(i)) continue;
            if (!cores_[i].in_sync_all() || cores_[i].syncs_all_kinds() != all_kinds) return;
            latest = std::max(latest, cores_[i].scalar_time());
        }
        for (uint32_t i = 0; i < cores_.size(); ++i) {
            if (!meets(i)) continue;
            cores_[i].leave_sync_all(latest + chip_.sync_all_cycles);
            calls_.push({latest + chip_.sync_all_cycles, i});
        }
    }

    // The core to be visited next, because of itself or of another, which is then done.
    Wake take_wake() {
        const Wake own{wakes_.time(), wakes_.place()};
        if (calls_.empty() || calls_.top() > own) return own;
        const Wake call = calls_.top();
        calls_.pop();
        return call;
    }

    void step() {
        const double wake = calls_.empty() ? wakes_.time() : std::min(wakes_.time(), calls_.top().time);
        const double start = pending_starts_.empty() ? kNever : pending_starts_.top().time;
        const double copy = memory_.next_finish();
        if (wake == kNever && start == kNever && copy == kNever) {
            throw std::runtime_error("malformed trace: the blocks wait for each other for ever");
        }
        if (copy <= wake && copy <= start) {
            const std::optional<uint32_t> owner = memory_.finish_next();
            if (!owner) return;
            const uint32_t core = *owner / kPipeCount;
            cores_[core].copy_finished(static_cast<Pipe>(*owner % kPipeCount), copy);
            visit(core, copy);
        } else if (start <= wake) {
            const uint32_t place = pending_starts_.top().core;
            pending_starts_.pop();
            give_group(place, start);
        } else {
            const Wake next = take_wake();
            if (cores_[next.core].active()) visit(next.core, next.time);
        }
    }

    using Schedule = std::priority_queue<Wake, std::vector<Wake>, std::greater<>>;

    const Trace &trace_;
    const Chip &chip_;
    Memory memory_;
    BankConflicts bank_conflicts_;
    std::vector<Core> cores_;
    Meetings meetings_;
    std::vector<uint32_t> still_running_;   // cores of each place
    Earliest wakes_{1};         // of each core by itself
    Schedule calls_;            // of cores by others
    Schedule pending_starts_;
    uint32_t next_group_ = 0;
    uint32_t cores_each_;
    uint32_t unclaimed_;        // groups that no place has been chosen for
    uint32_t unfinished_;
    double end_ = 0;
    double next_launch_ = 0;
};

}  // namespace

Price price_trace(const Trace &trace, const Chip &chip, Timeline &timeline, Coverage &coverage, std::vector<CachedLine> &l2) {
    Timeline none;
    for (double left = chip.launches;; left -= 1) {
        Engine engine(trace, chip, left > 1 ? none : timeline, coverage);
        engine.cache().fill(l2);
        const Price price = engine.run();
        l2 = engine.cache().contents();
        if (left <= 1) return price;
    }
}

}  // namespace asim
