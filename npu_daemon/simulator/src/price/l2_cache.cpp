#include "asim/timing/l2_cache.h"

#include <algorithm>

namespace asim {

L2Cache::L2Cache(uint64_t capacity_bytes, uint64_t line_bytes)
    : line_bytes_(line_bytes), capacity_lines_(capacity_bytes / line_bytes), lines_(1) {}

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

uint32_t L2Cache::find_line(uint64_t tag, CacheTraffic &traffic) {
    const auto found = where_.find(tag);
    if (found == where_.end()) return take_line(tag, traffic);
    unlink(found->second);
    push_newest(found->second);
    return found->second;
}

CacheTraffic L2Cache::bypass(uint64_t address, uint64_t bytes, double factor) const {
    CacheTraffic traffic;
    const uint64_t end = address + bytes;
    for (uint64_t at = address; at < end;) {
        const uint64_t line_end = std::min(end, (at / line_bytes_ + 1) * line_bytes_);
        const bool cached = where_.count(at / line_bytes_) != 0;
        (cached ? traffic.hit_bytes : traffic.miss_bytes) += static_cast<double>(line_end - at) * factor;
        at = line_end;
    }
    return traffic;
}

CacheTraffic L2Cache::access(uint64_t address, uint64_t bytes, bool write, double factor) {
    CacheTraffic traffic;
    const uint64_t sector_bytes = line_bytes_ / kSectors;
    const uint64_t end = address + bytes;
    for (uint64_t at = address; at < end;) {
        Line &line = lines_[find_line(at / line_bytes_, traffic)];
        const uint64_t line_end = std::min(end, (at / line_bytes_ + 1) * line_bytes_);
        for (; at < line_end; at = std::min(line_end, (at / sector_bytes + 1) * sector_bytes)) {
            const uint64_t sector_end = std::min(line_end, (at / sector_bytes + 1) * sector_bytes);
            const auto bit = static_cast<uint8_t>(1u << (at / sector_bytes % kSectors));
            (line.valid & bit ? traffic.hit_bytes : traffic.miss_bytes) += static_cast<double>(sector_end - at) * factor;
            line.valid |= bit;
        }
        line.dirty |= write;
    }
    return traffic;
}

}  // namespace asim
