// Memory instructions of a core that have not finished: what later ones on other pipes may have to wait for.
#pragma once
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
    void hold(const Waiting &waiting) { count_holders(waiting, 1); }
    void release(const Waiting &waiting) { count_holders(waiting, -1); }

    // Remembers an instruction and returns its slot, which is valid until its end is forgotten.
    uint32_t add(const Entry &entry, Pipe pipe);

    void start(uint32_t slot, double time) { accesses_[slot].started = time; }
    void finish(uint32_t slot, double time);

    // Forgets what has finished by `now`.
    void forget(double now);

    // The latest end of what is awaited, each `extra_cycles` after it, or nothing while some end is unknown. A copy from
    // L0C with the unit flag, which takes `unit_cycles`, follows a multiplication with the flag tile by tile: it may start
    // so that both end together.
    std::optional<double> ready(Waiting &waiting, double extra_cycles, double unit_cycles) const;

private:
    struct Access {
        uint64_t serial = 0;        // 0: forgotten
        double started = kNever;
        double done = kNever;
        bool unit_flag = false;
        int32_t holders = 0;        // instructions in queues that must follow it
    };
    struct Range {
        uint64_t begin, end;
        uint64_t serial;            // of the access, which may be forgotten meanwhile
        uint32_t slot;
        Pipe pipe;
        bool written;
    };

    bool live(const Range &range) const { return accesses_[range.slot].serial == range.serial; }
    void count_holders(const Waiting &waiting, int32_t change);
    void drop_forgotten(std::vector<Range> &ranges) const;

    std::vector<Access> accesses_;
    std::vector<uint32_t> finished_;                        // slots of those that have an end and are not forgotten
    std::vector<uint32_t> free_slots_;
    std::array<std::vector<Range>, kSpaceCount> ranges_;    // of all accesses, and of some forgotten ones, by memory
    uint64_t next_serial_ = 1;
};

}  // namespace asim
