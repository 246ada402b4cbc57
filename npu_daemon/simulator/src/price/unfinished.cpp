#include "asim/timing/unfinished.h"

#include <algorithm>

namespace asim {

namespace {

// Calls f(space, begin, end, written) for the bytes that each operand touches. Bursts of a strided copy leave gaps in
// global memory that other copies may fill: nothing is known of overlaps.
template <typename F>
void for_each_range(const Entry &entry, F f) {
    const Record &record = entry.record;
    const bool in_bursts = (reads_gm(record.op) || writes_gm(record.op)) && record.repeats > 1;
    const bool writes_first = record.op != Op::ScalarAccess || record.repeats == 1;
    for (uint32_t i = 0; i < record.operands; ++i) {
        const Operand &operand = entry.operands[i];
        const bool gaps = in_bursts && operand.space == static_cast<uint64_t>(Space::Gm) && operand.stride != record.burst_bytes;
        if (gaps || operand.extent_bytes == 0) continue;
        f(operand.space, operand.address, operand.address + operand.extent_bytes, i == 0 && writes_first);
    }
}

}  // namespace

void Unfinished::find_in(const Ranges &ranges, uint64_t begin, uint64_t end, const Follower &follower) {
    if (begin >= ranges.highest || ranges.lowest >= end) return;
    for (size_t i = ranges.first; i < ranges.all.size(); ++i) {
        const Range &other = ranges.all[i];
        if (begin >= other.end || other.begin >= end) continue;
        if (!live(other) || done_[other.slot] <= follower.now) continue;
        follower.waiting.on_.push(other.slot);
        holders_[other.slot] += follower.holds;
    }
}

uint32_t Unfinished::find_conflicts(const Entry &entry, Pipe pipe, double now, Waiting &waiting) {
    const uint32_t others = ~(1u << static_cast<uint32_t>(pipe));
    const uint32_t before = waiting.on_.size();
    const Follower follower{now, pipe != Pipe::S, waiting};
    for_each_range(entry, [&](uint64_t space, uint64_t begin, uint64_t end, bool written) {
        for (uint32_t pipes = pipes_in_[space] & others; pipes != 0; pipes &= pipes - 1) {
            const auto &ranges = ranges_[space][static_cast<uint32_t>(__builtin_ctz(pipes))];
            find_in(ranges[true], begin, end, follower);
            if (written) find_in(ranges[false], begin, end, follower);
        }
    });
    return waiting.on_.size() - before;
}

uint32_t Unfinished::take_slot() {
    if (!free_slots_.empty()) {
        const uint32_t slot = free_slots_.back();
        free_slots_.pop_back();
        return slot;
    }
    const size_t slots = done_.size() + 1;
    done_.resize(slots);
    started_.resize(slots);
    serials_.resize(slots);
    holders_.resize(slots);
    unit_flags_.resize(slots);
    listed_.resize(slots);
    return static_cast<uint32_t>(slots - 1);
}

uint32_t Unfinished::add(const Entry &entry, Pipe pipe) {
    const uint32_t slot = take_slot();
    const uint32_t serial = next_serial_++;
    done_[slot] = started_[slot] = kNever;
    serials_[slot] = serial;
    unit_flags_[slot] = entry.record.op == Op::Mmad && (entry.record.flag_id & kUnitFlag) != 0;
    for_each_range(entry, [&](uint64_t space, uint64_t begin, uint64_t end, bool written) {
        pipes_in_[space] |= 1u << static_cast<uint32_t>(pipe);
        remember(ranges_[space][static_cast<size_t>(pipe)][written], {begin, end, serial, slot});
    });
    return slot;
}

// Room for another is made by dropping what is forgotten at the front, when that is half of it.
void Unfinished::remember(Ranges &ranges, const Range &range) const {
    while (ranges.first < ranges.all.size() && !live(ranges.all[ranges.first])) ++ranges.first;
    if (2 * ranges.first >= ranges.all.size()) {
        ranges.all.erase(ranges.all.begin(), ranges.all.begin() + static_cast<std::ptrdiff_t>(ranges.first));
        ranges.first = 0;
        ranges.lowest = ~0ull;
        ranges.highest = 0;
        for (const Range &left : ranges.all) ranges.widen(left);
    }
    ranges.all.push_back(range);
    ranges.widen(range);
}

void Unfinished::list(uint32_t slot) {
    first_end_ = std::min(first_end_, done_[slot]);
    if (listed_[slot]) return;
    listed_[slot] = true;
    finished_.push_back(slot);
}

void Unfinished::finish(uint32_t slot, double time) {
    done_[slot] = time;
    list(slot);
}

void Unfinished::forget_finished(double now) {
    first_end_ = kNever;
    for (size_t i = 0; i < finished_.size();) {
        const uint32_t slot = finished_[i];
        if (done_[slot] > now) {
            first_end_ = std::min(first_end_, done_[slot]);
            ++i;
            continue;
        }
        listed_[slot] = false;
        if (holders_[slot] == 0) {
            serials_[slot] = 0;
            free_slots_.push_back(slot);
        }
        finished_[i] = finished_.back();
        finished_.pop_back();
    }
}

void Unfinished::release(Waiting &waiting, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t slot = waiting.on_[i];
        if (--holders_[slot] == 0) list(slot);
    }
    waiting.on_.pop(count);
    waiting.settle();
}

// The last ones first: they are likely to end last.
std::optional<double> Unfinished::ready(Waiting &waiting, uint32_t count, double extra_cycles, double unit_cycles) const {
    for (; waiting.settled_ < count; ++waiting.settled_) {
        const uint32_t slot = awaited(waiting, count);
        const double done = done_[slot];
        if (done == kNever) return std::nullopt;
        const double last = unit_cycles > 0 && unit_flags_[slot] ? std::max(started_[slot], done - unit_cycles) : done;
        waiting.until_ = std::max(waiting.until_, last + extra_cycles);
    }
    return waiting.until_;
}

}  // namespace asim
