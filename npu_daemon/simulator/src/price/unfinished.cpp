#include "asim/timing/unfinished.h"

#include <algorithm>
#include <stdexcept>

namespace asim {

namespace {

constexpr uint32_t kEnds = 16;      // that a pipe keeps without a look at whether somebody needs them

// Calls f(space, begin, bytes, written) for the bytes that each operand touches, sources first: they are what other pipes have
// touched last. Bursts of a strided copy leave gaps in global memory that other copies may fill: nothing is known of overlaps.
template <typename F>
void for_each_range(const Entry &entry, F f) {
    const Record &record = entry.record;
    const bool in_bursts = (reads_gm(record.op) || writes_gm(record.op)) && record.repeats > 1;
    const bool writes_first = record.op != Op::ScalarAccess || record.repeats == 1;
    for (uint32_t i = record.operands; i-- > 0;) {
        const Operand &operand = entry.operands[i];
        const bool gaps = in_bursts && operand.space == static_cast<uint64_t>(Space::Gm) && operand.stride != record.burst_bytes;
        if (gaps || operand.extent_bytes == 0) continue;
        f(operand.space, operand.address, operand.extent_bytes, i == 0 && writes_first);
    }
}

}  // namespace

void Unfinished::Ranges::forget(uint32_t unfinished) {
    const auto past = [unfinished](const Range &range) { return range.number < unfinished; };
    all_.erase(all_.begin(), std::partition_point(all_.begin(), all_.end(), past));
    kept_ = std::max(kFewest, 2 * all_.size());
    lowest_ = ~0ull;
    highest_ = 0;
    for (const Range &left : all_) widen(left);
}

void Unfinished::Ranges::add(const Range &range, uint32_t unfinished) {
    if (all_.size() == kept_) forget(unfinished);
    all_.push_back(range);
    widen(range);
}

uint32_t Unfinished::Ranges::behind_latest(const Range &range, uint32_t from) const {
    if (range.begin >= highest_ || lowest_ >= range.end()) return from;
    for (size_t i = all_.size(); i > 0 && all_[i - 1].number >= from; --i) {
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
    for_each_range(entry, [&](uint64_t space, uint64_t begin, uint32_t bytes, bool written) {
        const Range range{begin, written, bytes, own.issued};
        found |= find_latest(range, space, pipe, from);
        pipes_in_[space] |= bit(pipe);
        ranges_[space][static_cast<size_t>(pipe)].add(range, past_[static_cast<size_t>(pipe)]);
    });
    ++own.issued;
    for (uint32_t pipes = found; pipes != 0; pipes &= pipes - 1) {
        const uint32_t other = lowest(pipes);
        own.follows[other].push(from[other] - 1);
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

// Drops ends that are past and that nothing in a queue follows.
void Unfinished::forget_ends(uint32_t pipe) {
    OfPipe &own = pipes_[pipe];
    uint32_t needed = std::min(past_[pipe], own.ended - 1);
    for (const OfPipe &other : pipes_) {
        if (!other.follows[pipe].empty()) needed = std::min(needed, other.follows[pipe].front());
    }
    own.ends.pop(needed - own.kept);
    own.kept = needed;
}

double Unfinished::ready(Pipe pipe, uint32_t others, double extra_cycles, double unit_cycles) {
    OfPipe &own = of(pipe);
    double until = 0;
    for (; others != 0; others &= others - 1) {
        const uint32_t other = lowest(others);
        const uint32_t number = own.follows[other].front();
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
    for_each_range(access, [&](uint64_t space, uint64_t begin, uint32_t bytes, bool written) {
        found |= find_latest({begin, written, bytes, 0}, space, Pipe::S, from);
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
