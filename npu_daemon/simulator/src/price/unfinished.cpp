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

void Unfinished::find_conflicts(const Entry &entry, Pipe pipe, double now, Waiting &waiting) const {
    for_each_range(entry, [&](uint64_t space, uint64_t begin, uint64_t end, bool written) {
        for (const Range &other : ranges_[space]) {
            if (begin >= other.end || other.begin >= end || other.pipe == pipe) continue;
            const bool orders = (written || other.written) && live(other) && accesses_[other.slot].done > now;
            if (orders) waiting.on_.push_back(other.slot);
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
    const bool unit_flag = entry.record.op == Op::Mmad && (entry.record.flag_id & kUnitFlag) != 0;
    const uint64_t serial = next_serial_++;
    accesses_[slot] = {serial, kNever, kNever, unit_flag, 0};
    for_each_range(entry, [&](uint64_t space, uint64_t begin, uint64_t end, bool written) {
        std::vector<Range> &ranges = ranges_[space];
        if (ranges.size() == ranges.capacity()) drop_forgotten(ranges);
        ranges.push_back({begin, end, serial, slot, pipe, written});
    });
    return slot;
}

// Called when there is no room for more: at least half of it is free afterwards, or will be made.
void Unfinished::drop_forgotten(std::vector<Range> &ranges) const {
    const auto forgotten = [&](const Range &range) { return !live(range); };
    ranges.erase(std::remove_if(ranges.begin(), ranges.end(), forgotten), ranges.end());
    if (2 * ranges.size() > ranges.capacity()) ranges.reserve(2 * ranges.capacity());
}

void Unfinished::finish(uint32_t slot, double time) {
    accesses_[slot].done = time;
    finished_.push_back(slot);
}

void Unfinished::forget(double now) {
    for (size_t i = 0; i < finished_.size();) {
        Access &access = accesses_[finished_[i]];
        if (access.done > now || access.holders > 0) {
            ++i;
            continue;
        }
        access.serial = 0;
        free_slots_.push_back(finished_[i]);
        finished_[i] = finished_.back();
        finished_.pop_back();
    }
}

void Unfinished::count_holders(const Waiting &waiting, int32_t change) {
    for (const uint32_t slot : waiting.on_) accesses_[slot].holders += change;
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
