#include "asim/timing/engine.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <stdexcept>

namespace asim {

namespace {

class Engine {
public:
    Engine(const Trace &trace, const Chip &chip) : trace_(trace), chip_(chip), memory_(chip), unclaimed_(trace.block_count()),
          unfinished_(trace.block_count()) {
        const auto count = std::min<uint32_t>(trace.block_count(), static_cast<uint32_t>(chip.aiv_cores));
        cores_.reserve(count);
        for (uint32_t i = 0; i < count; ++i) cores_.emplace_back(chip, memory_, i);
    }

    Price run() {
        for (uint32_t i = 0; i < cores_.size(); ++i) pending_starts_.push({launch_time(0), i});
        unclaimed_ -= static_cast<uint32_t>(cores_.size());
        while (unfinished_ > 0) step();
        Price price;
        price.kernel_cycles = end_;
        price.blocks = trace_.block_count();
        price.task_us = chip_.launch_us + end_ / chip_.clock_mhz;
        for (const Core &core : cores_) price.cores.push_back(core.counters());
        return price;
    }

private:
    struct Wake {
        double time;
        uint32_t core;
        bool operator>(const Wake &other) const { return time != other.time ? time > other.time : core > other.core; }
    };

    void give_block(uint32_t core, double now) {
        cores_[core].start_block(Cursor(trace_, next_block_++), now);
        visit(core, now);
    }

    void visit(uint32_t index, double now) {
        Core &core = cores_[index];
        const double wake = core.advance(now);
        if (wake < kNever) wakes_.push({wake, index});
        if (core.in_sync_all()) leave_sync_all_if_complete();
        if (core.block_done()) end_block(index);
    }

    void end_block(uint32_t index) {
        --unfinished_;
        const double now = cores_[index].scalar_time();
        end_ = std::max(end_, now);
        if (unclaimed_ > 0) {
            --unclaimed_;
            pending_starts_.push({launch_time(now), index});
        }
    }

    // When a block that a core is free for at `now` starts: blocks are launched one after another.
    double launch_time(double now) {
        const double start = std::max(now, next_launch_);
        next_launch_ = start + chip_.launch_per_block_us * chip_.clock_mhz;
        return start;
    }

    // All resident blocks have arrived: they go on together.
    void leave_sync_all_if_complete() {
        double latest = 0;
        for (const Core &core : cores_) {
            if (!core.in_sync_all()) return;
            latest = std::max(latest, core.scalar_time());
        }
        for (uint32_t i = 0; i < cores_.size(); ++i) {
            cores_[i].leave_sync_all(latest + chip_.sync_all_cycles);
            wakes_.push({latest + chip_.sync_all_cycles, i});
        }
    }

    void step() {
        const double wake = wakes_.empty() ? kNever : wakes_.top().time;
        const double start = pending_starts_.empty() ? kNever : pending_starts_.top().time;
        const double copy = memory_.next_finish();
        if (std::min({wake, start, copy}) == kNever) {
            throw std::runtime_error("malformed trace: the blocks wait for each other for ever");
        }
        if (copy <= wake && copy <= start) {
            const uint64_t owner = memory_.finish_next();
            const auto core = static_cast<uint32_t>(owner / kPipeCount);
            cores_[core].copy_finished(static_cast<Pipe>(owner % kPipeCount), copy);
            visit(core, copy);
        } else if (start <= wake) {
            const uint32_t core = pending_starts_.top().core;
            pending_starts_.pop();
            give_block(core, start);
        } else {
            const uint32_t core = wakes_.top().core;
            wakes_.pop();
            if (cores_[core].active()) visit(core, wake);
        }
    }

    using Schedule = std::priority_queue<Wake, std::vector<Wake>, std::greater<>>;

    const Trace &trace_;
    const Chip &chip_;
    Memory memory_;
    std::vector<Core> cores_;
    Schedule wakes_;
    Schedule pending_starts_;
    uint32_t next_block_ = 0;
    uint32_t unclaimed_;        // blocks that no core has been chosen for
    uint32_t unfinished_;
    double end_ = 0;
    double next_launch_ = 0;
};

}  // namespace

Price price_trace(const Trace &trace, const Chip &chip) { return Engine(trace, chip).run(); }

}  // namespace asim
