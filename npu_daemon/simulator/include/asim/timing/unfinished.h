// Memory instructions of a core that have not finished: what later ones on other pipes may have to wait for.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "asim/timing/ring.h"
#include "asim/timing/trace_reader.h"

namespace asim {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Instructions follow those that the compiler's automatic synchronisation would make them wait for, because they touch the
// same bytes. Those of one pipe start and end in their order, so only the latest of each pipe counts, and what one
// instruction follows those behind it in its pipe follow too. The instructions of a pipe are numbered from 0.
class Unfinished {
public:
    // Remembers an instruction that is issued to `pipe` at `now`. Returns the pipes, one bit each, on which it has to follow
    // an instruction that has not finished by then.
    uint32_t add(const Entry &entry, Pipe pipe, double now);

    // The first instruction of the pipe that had no end has one. No end is before that of an earlier one. Where its results
    // come tile by tile, an instruction with the unit flag may follow them.
    void finish(Pipe pipe, double start, double end, bool tile_by_tile);

    // When the head of a pipe, which follows instructions on the pipes `others`, may start: `extra_cycles` after the latest
    // of them has ended, or kNever while some end is unknown. A copy from L0C with the unit flag, which takes `unit_cycles`,
    // may start so that it ends with a multiplication that gives its results tile by tile.
    double ready(Pipe pipe, uint32_t others, double extra_cycles, double unit_cycles);

    // Where that was kNever: whether what the head waits for first has an end.
    bool settled(Pipe pipe) const;

    // The head has left the queue.
    void release(Pipe pipe, uint32_t others) {
        if (others != 0) of(pipe).follows.pop();
    }

    // When all that has not finished by `now` and that an access of the scalar unit must follow ends: 0 if it need not follow
    // any, nothing while some end is unknown.
    std::optional<double> end_before(const Entry &access, double now);

private:
    static constexpr size_t kHostLineBytes = 64;    // what is used together shares lines of the host's cache
    static constexpr uint32_t kNone = ~0u;

    struct Range {
        uint64_t begin = 0;
        uint64_t end = 0;
        uint32_t number = 0;        // of the instruction
        bool written = false;

        Range() = default;
        Range(const Operand &operand, bool writes, uint32_t instruction)
            : begin(operand.address), end(operand.address + operand.extent_bytes), number(instruction), written(writes) {}
        bool conflicts(const Range &other) const { return begin < other.end && other.begin < end && (written || other.written); }
    };
    // What the instructions of one pipe touch in one memory, in their order.
    class alignas(kHostLineBytes) Ranges {
    public:
        // Adds one, and forgets those of instructions before `unfinished` from time to time.
        void add(const Range &range, uint32_t unfinished);

        // The number behind the latest instruction, of those from `from` on, that conflicts with a range: one of both writes bytes
        // that the other touches; `from` if there is none.
        uint32_t behind_latest(const Range &range, uint32_t from) const;

    private:
        static constexpr uint32_t kFewest = 32;

        void forget(uint32_t unfinished);
        void widen(const Range &range) {
            lowest_ = std::min(lowest_, range.begin);
            highest_ = std::max(highest_, range.end);
        }

        uint64_t lowest_ = ~0ull;   // all lie from here
        uint64_t highest_ = 0;      // to here
        uint32_t count_ = 0;
        uint32_t capacity_ = 0;
        Range latest_;              // the last of them, which is looked at most
        std::unique_ptr<Range[]> all_;
    };
    struct End {
        double time;
        double with_unit_flag;      // what a copy with the unit flag may not start before
    };
    using Numbers = std::array<uint32_t, 8>;                // by pipe; a vector of the host
    struct alignas(kHostLineBytes) OfPipe {
        uint32_t issued = 0;        // how many
        uint32_t ended = 0;         // how many of them have an end
        uint32_t kept = 0;          // the first of those whose ends are still known
        uint32_t awaits_number = 0;
        Ring<End> ends;
        Ring<Numbers> follows;      // of those in its queue that follow others: their numbers, by pipe, or kNone
        Numbers followed{};         // by pipe: those before it are followed by something in the queue, or were
        uint32_t awaits = 0;        // pipe and number of what its head waits for

        const End &end(uint32_t number) const { return ends[number - kept]; }
    };
    using RangesOfPipes = std::array<Ranges, kPipeCount>;

    static uint32_t lowest(uint32_t bits) { return static_cast<uint32_t>(__builtin_ctz(bits)); }
    static uint32_t bit(Pipe pipe) { return 1u << static_cast<uint32_t>(pipe); }
    OfPipe &of(Pipe pipe) { return pipes_[static_cast<size_t>(pipe)]; }
    void pass(double now);
    uint32_t find_latest(const Range &range, uint64_t space, Pipe pipe, Numbers &from) const;
    static uint32_t first_followed(const OfPipe &queue, uint32_t pipe);
    void forget_ends(uint32_t pipe);

    alignas(kHostLineBytes) Numbers past_{};                // how many of each pipe have an end that is past
    std::array<uint8_t, kTracedSpaceCount> pipes_in_{};           // that have touched a memory, one bit each
    uint32_t ending_ = 0;                                   // pipes with ends that are not past, one bit each
    std::array<OfPipe, kPipeCount> pipes_;
    std::array<RangesOfPipes, kTracedSpaceCount> ranges_;         // by memory
};

}  // namespace asim
