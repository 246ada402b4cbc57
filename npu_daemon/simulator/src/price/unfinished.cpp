#include "asim/timing/unfinished.h"

#include <algorithm>
#include <stdexcept>

namespace asim {

namespace {

constexpr uint32_t kEnds = 16;      // that a pipe keeps without a look at whether somebody needs them

// Calls f(operand, written) for each operand of which is known what it touches, sources first: they are what other pipes have
// touched last. Of the others nothing is known of overlaps.
template <typename F>
void for_each_range(const Entry &entry, F f) {
    for (uint32_t known = entry.known >> 1, i = 1; known != 0; known >>= 1, ++i) {
        if ((known & 1) != 0) f(entry.operands[i], false);
    }
    if ((entry.known & 1) != 0) f(entry.operands[0], entry.kind != RecordKind::Access || entry.record.repeats == 1);
    if (sets_register(entry.record)) f(register_set_by(entry.record), true);
}

}  // namespace

// Makes room for more.
void Unfinished::Ranges::forget(uint32_t unfinished) {
    const auto past = [unfinished](const Range &range) { return range.number < unfinished; };
    Range *const end = all_.get() + count_, *const first = std::partition_point(all_.get(), end, past);
    count_ = static_cast<uint32_t>(end - first);
    if (2 * count_ > capacity_ || capacity_ == 0) {
        capacity_ = std::max(kFewest, 2 * count_);
        auto more = std::make_unique<Range[]>(capacity_);
        std::copy(first, end, more.get());
        all_ = std::move(more);
    } else {
        std::copy(first, end, all_.get());
    }
    lowest_ = ~0ull;
    highest_ = 0;
    for (uint32_t i = 0; i < count_; ++i) widen(all_[i]);
}

void Unfinished::Ranges::add(const Range &range, uint32_t unfinished) {
    if (count_ == capacity_) forget(unfinished);
    all_[count_++] = latest_ = range;
    widen(range);
}

uint32_t Unfinished::Ranges::behind_latest(const Range &range, uint32_t from) const {
    if (range.begin >= highest_ || lowest_ >= range.end || count_ == 0 || latest_.number < from) return from;
    if (range.conflicts(latest_)) return latest_.number + 1;
    for (uint32_t i = count_ - 1; i > 0 && all_[i - 1].number >= from; --i) {
        if (range.conflicts(all_[i - 1])) return all_[i - 1].number + 1;
    }
    return from;
}

// Takes note of which ends are past.
void Unfinished::pass(double now) {
    for (uint32_t pipes = ending_; pipes != 0; pipes &= pipes - 1) {
        const uint32_t which = lowest(pipes);
        const OfPipe &pipe = pipes_[which];
        uint32_t past = past_[which];
        while (past < pipe.ended && pipe.end(past).time <= now) ++past;
        past_[which] = past;
        if (past == pipe.ended) ending_ &= ~(pipes & -pipes);
    }
}

// Looks for the latest instruction on each pipe but `pipe` that a range conflicts with, among those with the numbers `from`
// on. Sets these to the ones behind it, and returns the pipes that have any, one bit each.
uint32_t Unfinished::find_latest(const Range &range, uint64_t space, Pipe pipe, Numbers &from) const {
    uint32_t found = 0;
    for (uint32_t pipes = pipes_in_[space] & ~bit(pipe); pipes != 0; pipes &= pipes - 1) {
        const uint32_t other = lowest(pipes);
        const uint32_t behind = ranges_[space][other].behind_latest(range, from[other]);
        if (behind == from[other]) continue;
        from[other] = behind;
        found |= 1u << other;
    }
    return found;
}

uint32_t Unfinished::add(const Entry &entry, Pipe pipe, double now) {
    pass(now);
    OfPipe &own = of(pipe);
    if (own.issued == ~0u) throw std::runtime_error("malformed trace: a core has too many instructions");
    Numbers from;
    for (size_t other = 0; other < from.size(); ++other) from[other] = own.followed[other] > past_[other] ? own.followed[other] : past_[other];
    uint32_t found = 0;
    for_each_range(entry, [&](const Operand &operand, bool written) {
        const Range range(operand, written, own.issued);
        found |= find_latest(range, operand.space, pipe, from);
        pipes_in_[operand.space] |= static_cast<uint8_t>(bit(pipe));
        ranges_[operand.space][static_cast<size_t>(pipe)].add(range, past_[static_cast<size_t>(pipe)]);
    });
    ++own.issued;
    if (found == 0) return 0;
    Numbers &follows = own.follows.push();
    follows.fill(kNone);
    for (uint32_t pipes = found; pipes != 0; pipes &= pipes - 1) {
        const uint32_t other = lowest(pipes);
        follows[other] = from[other] - 1;
        own.followed[other] = from[other];
    }
    return found;
}

void Unfinished::finish(Pipe pipe, double start, double end, bool tile_by_tile) {
    OfPipe &own = of(pipe);
    if (own.ends.size() >= kEnds) forget_ends(static_cast<uint32_t>(pipe));
    double with_unit_flag = end;
    if (tile_by_tile) {     // its tiles come after all results of those before it
        const double before = own.ends.empty() ? start : own.end(own.ended - 1).time;
        with_unit_flag = std::min(std::max(start, before), end);
    }
    own.ends.push({end, with_unit_flag});
    ++own.ended;
    ending_ |= bit(pipe);
}

// The first of the instructions on `pipe` that something in a queue follows, or kNone.
uint32_t Unfinished::first_followed(const OfPipe &queue, uint32_t pipe) {
    for (uint32_t i = 0; i < queue.follows.size(); ++i) {
        if (queue.follows[i][pipe] != kNone) return queue.follows[i][pipe];
    }
    return kNone;
}

// Drops ends that are past and that nothing in a queue follows.
void Unfinished::forget_ends(uint32_t pipe) {
    OfPipe &own = pipes_[pipe];
    uint32_t needed = std::min(past_[pipe], own.ended - 1);
    for (const OfPipe &other : pipes_) {
        if (other.followed[pipe] > own.kept) needed = std::min(needed, first_followed(other, pipe));
    }
    own.ends.pop(needed - own.kept);
    own.kept = needed;
}

double Unfinished::ready(Pipe pipe, uint32_t others, double extra_cycles, double unit_cycles) {
    OfPipe &own = of(pipe);
    const Numbers &follows = own.follows.front();
    double until = 0;
    for (; others != 0; others &= others - 1) {
        const uint32_t other = lowest(others);
        const uint32_t number = follows[other];
        if (number >= pipes_[other].ended) {
            own.awaits = other;
            own.awaits_number = number;
            return kNever;
        }
        const End &end = pipes_[other].end(number);
        const double last = unit_cycles > 0 ? std::max(end.with_unit_flag, end.time - unit_cycles) : end.time;
        until = std::max(until, last + extra_cycles);
    }
    return until;
}

bool Unfinished::settled(Pipe pipe) const {
    const OfPipe &own = pipes_[static_cast<size_t>(pipe)];
    return own.awaits_number < pipes_[own.awaits].ended;
}

std::optional<double> Unfinished::end_before(const Entry &access, double now) {
    pass(now);
    Numbers from = past_;
    uint32_t found = 0;
    for_each_range(access, [&](const Operand &operand, bool written) {
        found |= find_latest(Range(operand, written, 0), operand.space, Pipe::S, from);
    });
    double end = 0;
    for (; found != 0; found &= found - 1) {
        const OfPipe &other = pipes_[lowest(found)];
        const uint32_t number = from[lowest(found)] - 1;
        if (number >= other.ended) return std::nullopt;
        end = std::max(end, other.end(number).time);
    }
    return end;
}

}  // namespace asim
