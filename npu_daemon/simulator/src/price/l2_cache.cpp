#include "asim/timing/l2_cache.h"

#include <algorithm>

namespace asim {

L2Cache::L2Cache(uint64_t capacity_bytes, uint64_t line_bytes, uint64_t dirty_bytes)
    : line_bytes_(line_bytes), line_bits_(static_cast<uint32_t>(__builtin_ctzll(line_bytes))), capacity_lines_(capacity_bytes / line_bytes), lines_(kFewLines, capacity_lines_), dirty_of_others_(dirty_bytes / line_bytes) {}

std::vector<CachedLine> L2Cache::contents() const {
    std::vector<CachedLine> lines;
    lines.reserve(count_);
    for (uint32_t index = lines_[0].newer; index != 0; index = lines_[index].newer) {
        lines.push_back({lines_.key(index), lines_[index].valid, lines_[index].dirty});
    }
    return lines;
}

void L2Cache::fill(const std::vector<CachedLine> &lines) {
    CacheTraffic unused;
    for (const CachedLine &line : lines) {
        Line &taken = lines_[take_line(line.tag, unused)];
        taken.valid = static_cast<uint8_t>(line.sectors);
        taken.dirty = line.dirty != 0;
    }
}

void L2Cache::unlink(uint32_t index) {
    lines_[lines_[index].newer].older = lines_[index].older;
    lines_[lines_[index].older].newer = lines_[index].newer;
}

void L2Cache::push_newest(uint32_t index) {
    const uint32_t previous = lines_[0].older;
    lines_[index].older = previous;
    lines_[index].newer = 0;
    lines_[previous].newer = index;
    lines_[0].older = index;
}

uint32_t L2Cache::take_line(uint64_t tag, CacheTraffic &traffic) {
    if (count_ < capacity_lines_) {
        ++count_;
        if (dirty_of_others_ > 0) {
            --dirty_of_others_;
            traffic.written_back_bytes += static_cast<double>(line_bytes_);
        }
    } else {
        const uint32_t oldest = lines_[0].newer;
        unlink(oldest);
        if (lines_[oldest].dirty) traffic.written_back_bytes += static_cast<double>(line_bytes_);
        lines_.erase(oldest);
    }
    const uint32_t index = lines_.insert(tag);
    push_newest(index);
    return index;
}

// The sectors that [from, to), which lies in one line, touches, one bit each.
uint8_t L2Cache::sectors(uint64_t from, uint64_t to) const {
    const uint32_t sector_bits = line_bits_ - kSectorBits;
    const uint64_t first = from >> sector_bits & (kSectors - 1);
    const uint64_t last = (to - 1) >> sector_bits & (kSectors - 1);
    return static_cast<uint8_t>(((2u << last) - 1) & ~((1u << first) - 1));
}

// Bytes of the request for [from, to), which lies in one line: the smallest part of it that holds both ends.
uint64_t L2Cache::requested(uint64_t from, uint64_t to, uint64_t burst_bytes) const {
    if (burst_bytes >= line_bytes_) return line_bytes_;
    const uint64_t differing = (from ^ (to - 1)) >> (line_bits_ - kSectorBits);     // sectors, by their lowest bits
    static_assert(kSectorBits == 2);
    return line_bytes_ >> (differing == 0 ? 2 : differing == 1 ? 1 : 0);
}

// Marks sectors of a line as used and returns those of them that were in the cache.
uint8_t L2Cache::touch(uint64_t tag, uint8_t touched, CacheUse use, CacheTraffic &traffic) {
    const uint32_t found = lines_.find(tag);
    const bool known = found != Table<Line>::kNone;
    if (!known && use == CacheUse::Bypass) return 0;
    const uint32_t index = known ? found : take_line(tag, traffic);
    Line &line = lines_[index];
    const auto present = static_cast<uint8_t>(line.valid & touched);
    if (use == CacheUse::Bypass) return present;
    if (known && index != lines_[0].older) {
        unlink(index);
        push_newest(index);
    }
    line.valid |= touched;
    line.dirty |= use == CacheUse::Write;
    return present;
}

void L2Cache::access(uint64_t address, uint64_t bytes, CacheUse use, CacheTraffic &traffic) {
    const uint64_t end = address + bytes;
    uint64_t tag = line_of(address);
    for (uint64_t from = address, to; from < end; from = to, ++tag) {
        to = std::min(end, (tag + 1) * line_bytes_);
        const bool whole = to - from == line_bytes_;
        const uint8_t touched = whole ? kAllSectors : sectors(from, to);
        const uint8_t present = touch(tag, touched, use, traffic);
        const auto asked = static_cast<double>(whole ? line_bytes_ : requested(from, to, bytes));
        (present == touched ? traffic.hit_bytes : traffic.miss_bytes) += asked;
    }
}

}  // namespace asim
