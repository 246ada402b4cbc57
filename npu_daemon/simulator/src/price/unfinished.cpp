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

void Unfinished::find_in(const Ranges &ranges, uint64_t begin, uint64_t end, double now, Waiting &waiting) const {
    if (begin >= ranges.highest || ranges.lowest >= end) return;
    for (size_t i = ranges.first; i < ranges.all.size(); ++i) {
        const Range &other = ranges.all[i];
        if (begin >= other.end || other.begin >= end) continue;
        if (live(other) && accesses_[other.slot].done > now) waiting.on_.push_back(other.slot);
    }
}

void Unfinished::find_conflicts(const Entry &entry, Pipe pipe, double now, Waiting &waiting) const {
    const uint32_t others = ~(1u << static_cast<uint32_t>(pipe));
    for_each_range(entry, [&](uint64_t space, uint64_t begin, uint64_t end, bool written) {
        for (uint32_t pipes = pipes_in_[space] & others; pipes != 0; pipes &= pipes - 1) {
            const auto &ranges = ranges_[space][static_cast<uint32_t>(__builtin_ctz(pipes))];
            find_in(ranges[true], begin, end, now, waiting);
            if (written) find_in(ranges[false], begin, end, now, waiting);
        }
    });
}

uint32_t Unfinished::add(const Entry &entry, Pipe pipe) {
    uint32_t slot;
    if (free_slots_.empty()) {
        slot = static_cast<uint32_t>(accesses_.size());
        accesses_.emplace_back();
    } else {
        slot = free_slots_.back();
        free_slots_.pop_back();
    }
    Access &access = accesses_[slot];
    access = {next_serial_++, kNever, kNever};
    access.unit_flag = entry.record.op == Op::Mmad && (entry.record.flag_id & kUnitFlag) != 0;
    for_each_range(entry, [&](uint64_t space, uint64_t begin, uint64_t end, bool written) {
        pipes_in_[space] |= 1u << static_cast<uint32_t>(pipe);
        remember(ranges_[space][static_cast<size_t>(pipe)][written], {begin, end, access.serial, slot});
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
    Access &access = accesses_[slot];
    first_end_ = std::min(first_end_, access.done);
    if (access.listed) return;
    access.listed = true;
    finished_.push_back(slot);
}

void Unfinished::finish(uint32_t slot, double time) {
    accesses_[slot].done = time;
    list(slot);
}

void Unfinished::forget_finished(double now) {
    first_end_ = kNever;
    for (size_t i = 0; i < finished_.size();) {
        Access &access = accesses_[finished_[i]];
        if (access.done > now) {
            first_end_ = std::min(first_end_, access.done);
            ++i;
            continue;
        }
        access.listed = false;
        if (access.holders == 0) {
            access.serial = 0;
            free_slots_.push_back(finished_[i]);
        }
        finished_[i] = finished_.back();
        finished_.pop_back();
    }
}

void Unfinished::hold(const Waiting &waiting) {
    for (const uint32_t slot : waiting.on_) ++accesses_[slot].holders;
}

void Unfinished::release(const Waiting &waiting) {
    for (const uint32_t slot : waiting.on_) {
        if (--accesses_[slot].holders == 0) list(slot);
    }
}

std::optional<double> Unfinished::ready(Waiting &waiting, double extra_cycles, double unit_cycles) const {
    for (; waiting.settled_ < waiting.on_.size(); ++waiting.settled_) {
        const Access &access = accesses_[waiting.on_[waiting.settled_]];
        if (access.done == kNever) return std::nullopt;
        const double last = access.unit_flag && unit_cycles > 0 ? std::max(access.started, access.done - unit_cycles) : access.done;
        waiting.until_ = std::max(waiting.until_, last + extra_cycles);
    }
    return waiting.until_;
}

}  // namespace asim
