// Memory instructions of a core that have not finished: what later ones on other pipes may have to wait for.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "asim/timing/trace_reader.h"

namespace asim {

constexpr double kNever = std::numeric_limits<double>::infinity();

class Unfinished {
public:
    // What an instruction has to follow.
    class Waiting {
    public:
        void clear() {
            on_.clear();
            settled_ = 0;
            until_ = 0;
        }

    private:
        friend class Unfinished;
        std::vector<uint32_t> on_;      // slots
        size_t settled_ = 0;    // the first ones, known to have an end
        double until_ = 0;      // of those, the latest
    };

    // Adds to `waiting` the instructions on other pipes, not finished by `now`, that `entry` must follow: what the
    // compiler's automatic synchronisation would insert for overlapping ranges.
    void find_conflicts(const Entry &entry, Pipe pipe, double now, Waiting &waiting) const;

    // What is held is not forgotten before it is released.
    void hold(const Waiting &waiting);
    void release(const Waiting &waiting);

    // Remembers an instruction and returns its slot, which is valid until its end is forgotten.
    uint32_t add(const Entry &entry, Pipe pipe);

    void start(uint32_t slot, double time) { accesses_[slot].started = time; }
    void finish(uint32_t slot, double time);

    // Forgets what has finished by `now`.
    void forget(double now) {
        if (now >= first_end_) forget_finished(now);
    }

    // The latest end of what is awaited, each `extra_cycles` after it, or nothing while some end is unknown. A copy from
    // L0C with the unit flag, which takes `unit_cycles`, follows a multiplication with the flag tile by tile: it may start
    // so that both end together.
    std::optional<double> ready(Waiting &waiting, double extra_cycles, double unit_cycles) const;

    // Where there was nothing: the slot whose end is unknown.
    static uint32_t awaited(const Waiting &waiting) { return waiting.on_[waiting.settled_]; }

private:
    struct Access {
        uint64_t serial = 0;        // 0: forgotten
        double started = kNever;
        double done = kNever;
        bool unit_flag = false;
        bool listed = false;        // in finished_
        int32_t holders = 0;        // instructions in queues that must follow it
    };
    struct Range {
        uint64_t begin, end;
        uint64_t serial;            // of the access, which may be forgotten meanwhile
        uint32_t slot;
    };
    // What the instructions of one pipe read, or write, in one memory. They finish nearly in order, so those at the front
    // are dropped once they are forgotten.
    struct Ranges {
        uint64_t lowest = ~0ull;    // all lie from here
        uint64_t highest = 0;       // to here
        size_t first = 0;
        std::vector<Range> all;

        void widen(const Range &range) {
            lowest = std::min(lowest, range.begin);
            highest = std::max(highest, range.end);
        }
    };
    using RangesOfPipes = std::array<std::array<Ranges, 2>, kPipeCount>;    // of each pipe what it reads, what it writes

    bool live(const Range &range) const { return accesses_[range.slot].serial == range.serial; }
    void find_in(const Ranges &ranges, uint64_t begin, uint64_t end, double now, Waiting &waiting) const;
    void remember(Ranges &ranges, const Range &range) const;
    void list(uint32_t slot);
    void forget_finished(double now);

    std::vector<Access> accesses_;
    std::vector<uint32_t> finished_;                        // slots that have an end and no holders, and some that have
    double first_end_ = kNever;                             // of those
    std::vector<uint32_t> free_slots_;
    std::array<RangesOfPipes, kSpaceCount> ranges_;         // of all accesses, and of some forgotten ones, by memory
    std::array<uint32_t, kSpaceCount> pipes_in_{};          // that have touched a memory, one bit each
    uint64_t next_serial_ = 1;
};

}  // namespace asim
