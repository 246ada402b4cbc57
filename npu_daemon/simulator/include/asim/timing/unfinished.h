// Memory instructions of a core that have not finished: what later ones on other pipes may have to wait for.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "asim/timing/ring.h"
#include "asim/timing/trace_reader.h"

namespace asim {

constexpr double kNever = std::numeric_limits<double>::infinity();

class Unfinished {
public:
    // What the instructions of a queue have to follow, each a number of others: those of its head first.
    class Waiting {
    public:
        void clear() {
            on_.clear();
            settle();
        }

    private:
        friend class Unfinished;
        void settle() {
            settled_ = 0;
            until_ = 0;
        }

        Ring<uint32_t> on_;     // slots
        uint32_t settled_ = 0;  // of the head's, the last ones, known to have an end
        double until_ = 0;      // of those, the latest
    };

    // Adds to `waiting` the instructions on other pipes, not finished by `now`, that `entry` must follow: what the
    // compiler's automatic synchronisation would insert for overlapping ranges. Returns how many they are. Those that an
    // instruction in the queue of a pipe follows are not forgotten before it is released, when it leaves the queue.
    uint32_t find_conflicts(const Entry &entry, Pipe pipe, double now, Waiting &waiting);
    void release(Waiting &waiting, uint32_t count);

    // Remembers an instruction and returns its slot, which is valid until its end is forgotten.
    uint32_t add(const Entry &entry, Pipe pipe);

    void start(uint32_t slot, double time) { started_[slot] = time; }
    void finish(uint32_t slot, double time);

    // Forgets what has finished by `now`.
    void forget(double now) {
        if (now >= first_end_) forget_finished(now);
    }

    // The latest end of the `count` that the head follows, each `extra_cycles` after it, or nothing while some end is
    // unknown. A copy from L0C with the unit flag, which takes `unit_cycles`, follows a multiplication with the flag tile by
    // tile: it may start so that both end together.
    std::optional<double> ready(Waiting &waiting, uint32_t count, double extra_cycles, double unit_cycles) const;

    // Where there was nothing: the slot whose end is unknown.
    static uint32_t awaited(const Waiting &waiting, uint32_t count) { return waiting.on_[count - 1 - waiting.settled_]; }

private:
    struct Range {
        uint64_t begin, end;
        uint32_t serial;            // of the access, which may be forgotten meanwhile
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

    bool live(const Range &range) const { return serials_[range.slot] == range.serial; }
    struct Follower {
        double now;
        bool holds;                 // what it follows
        Waiting &waiting;
    };
    void find_in(const Ranges &ranges, uint64_t begin, uint64_t end, const Follower &follower);
    uint32_t take_slot();
    void list(uint32_t slot);
    void remember(Ranges &ranges, const Range &range) const;
    void forget_finished(double now);

    // By slot, each figure for itself: most often one of them is asked of many instructions.
    std::vector<double> done_;
    std::vector<double> started_;
    std::vector<uint32_t> serials_;                         // 0: forgotten
    std::vector<uint32_t> holders_;                         // instructions in queues that must follow it
    std::vector<uint8_t> unit_flags_;
    std::vector<uint8_t> listed_;                           // in finished_
    std::vector<uint32_t> finished_;                        // slots that have an end and no holders, and some that have
    double first_end_ = kNever;                             // of those
    std::vector<uint32_t> free_slots_;
    std::array<RangesOfPipes, kSpaceCount> ranges_;         // of all accesses, and of some forgotten ones, by memory
    std::array<uint32_t, kSpaceCount> pipes_in_{};          // that have touched a memory, one bit each
    uint32_t next_serial_ = 1;
};

}  // namespace asim
