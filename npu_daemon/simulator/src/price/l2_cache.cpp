#include "asim/timing/l2_cache.h"

#include <algorithm>

namespace asim {

L2Cache::L2Cache(uint64_t capacity_bytes, uint64_t line_bytes)
    : line_bytes_(line_bytes), capacity_lines_(capacity_bytes / line_bytes), lines_(1) {
    where_.reserve(capacity_lines_);
}

std::vector<CachedLine> L2Cache::contents() const {
    std::vector<CachedLine> lines;
    lines.reserve(lines_.size());
    for (uint32_t index = lines_[0].newer; index != 0; index = lines_[index].newer) {
        lines.push_back({lines_[index].tag, lines_[index].valid, lines_[index].dirty});
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
    uint32_t index;
    if (lines_.size() <= capacity_lines_) {
        index = static_cast<uint32_t>(lines_.size());
        lines_.emplace_back();
    } else {
        index = lines_[0].newer;
        unlink(index);
        where_.erase(lines_[index].tag);
        if (lines_[index].dirty) traffic.written_back_bytes += static_cast<double>(line_bytes_);
    }
    lines_[index].tag = tag;
    lines_[index].dirty = false;
    lines_[index].valid = 0;
    where_[tag] = index;
    push_newest(index);
    return index;
}

// The sectors that [from, to), which lies in one line, touches, one bit each.
uint8_t L2Cache::sectors(uint64_t from, uint64_t to) const {
    const uint64_t sector_bytes = line_bytes_ / kSectors;
    const uint64_t first = from % line_bytes_ / sector_bytes;
    const uint64_t last = (to - 1) % line_bytes_ / sector_bytes;
    return static_cast<uint8_t>(((2u << last) - 1) & ~((1u << first) - 1));
}

// Bytes of the request for [from, to), which lies in one line.
uint64_t L2Cache::requested(uint64_t from, uint64_t to, uint64_t burst_bytes) const {
    if (burst_bytes >= line_bytes_) return line_bytes_;
    for (uint64_t window = line_bytes_ / kSectors; window < line_bytes_; window *= 2) {
        if (from / window == (to - 1) / window) return window;
    }
    return line_bytes_;
}

// Marks sectors of a line as used and returns those of them that were in the cache.
uint8_t L2Cache::touch(uint64_t tag, uint8_t touched, CacheUse use, CacheTraffic &traffic) {
    const auto found = where_.find(tag);
    if (found == where_.end() && use == CacheUse::Bypass) return 0;
    const uint32_t index = found == where_.end() ? take_line(tag, traffic) : found->second;
    Line &line = lines_[index];
    const auto present = static_cast<uint8_t>(line.valid & touched);
    if (use == CacheUse::Bypass) return present;
    if (found != where_.end()) {
        unlink(index);
        push_newest(index);
    }
    line.valid |= touched;
    line.dirty |= use == CacheUse::Write;
    return present;
}

void L2Cache::access(uint64_t address, uint64_t bytes, CacheUse use, CacheTraffic &traffic) {
    const uint64_t end = address + bytes;
    for (uint64_t at = address; at < end;) {
        const uint64_t line_end = std::min(end, (at / line_bytes_ + 1) * line_bytes_);
        const uint8_t touched = sectors(at, line_end);
        const uint8_t present = touch(at / line_bytes_, touched, use, traffic);
        const auto asked = static_cast<double>(requested(at, line_end, bytes));
        (present == touched ? traffic.hit_bytes : traffic.miss_bytes) += asked;
        at = line_end;
    }
}

}  // namespace asim
