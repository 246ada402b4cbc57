#include "asim/races/data_caches.h"

#include <algorithm>

namespace asim {

namespace {

constexpr uint32_t kPartsOfLine = kScalarLineBytes / kLinePartBytes;

}  // namespace

uint32_t DataCaches::parts_of(uint64_t line, uint64_t begin, uint64_t end) {
    const uint64_t first = begin > line ? (begin - line) / kLinePartBytes : 0;
    const uint64_t beyond = std::min<uint64_t>((end - line + kLinePartBytes - 1) / kLinePartBytes, kPartsOfLine);
    return static_cast<uint32_t>((uint64_t{1} << beyond) - (uint64_t{1} << first));
}

bool DataCaches::holds(uint32_t core, uint64_t line) const {
    const auto found = lines_.find(line);
    if (found == lines_.end()) return false;
    return std::any_of(found->second.begin(), found->second.end(), [&](const Copy &copy) { return copy.core == core && copy.held; });
}

// The line in the core's cache, loaded if it is not there.
DataCaches::Copy &DataCaches::obtain(uint32_t core, uint64_t line, const Newer &unseen) {
    std::vector<Copy> &copies = lines_[line];
    auto copy = std::find_if(copies.begin(), copies.end(), [&](const Copy &each) { return each.core == core; });
    if (copy == copies.end()) {
        copies.emplace_back().core = core;
        copy = std::prev(copies.end());
    }
    if (!copy->held) copy->newer = unseen;
    copy->held = true;
    return *copy;
}

std::optional<Overlap> DataCaches::load(const Origin &now, uint64_t begin, uint64_t end, const Newer &unseen) {
    const uint64_t line = line_of(begin);
    const Copy &copy = obtain(now.core, line, unseen);
    if ((copy.newer.parts & parts_of(line, begin, end)) == 0) return std::nullopt;
    return Overlap{copy.newer.by.where, begin, end, copy.newer.by.core, Space::Gm, Reason::Stale};
}

std::optional<Overlap> DataCaches::store(const Origin &now, uint64_t begin, uint64_t end, const Newer &unseen) {
    const uint64_t line = line_of(begin);
    Copy &copy = obtain(now.core, line, unseen);
    const uint32_t parts = parts_of(line, begin, end);
    copy.dirty |= parts;
    copy.stored = now.where;
    copy.newer.parts &= ~parts;
    if (copy.newer.parts == 0) return std::nullopt;
    return Overlap{copy.newer.by.where, line, line + kScalarLineBytes, copy.newer.by.core, Space::Gm, Reason::LineShared};
}

std::optional<Overlap> DataCaches::written(const Origin &now, bool by_scalar, const Knowledge &known, uint64_t begin, uint64_t end) {
    const auto beyond = lines_.lower_bound(end);
    for (auto at = lines_.lower_bound(line_of(begin)); at != beyond; ++at) {
        const uint64_t line = at->first;
        const uint32_t parts = parts_of(line, begin, end);
        for (Copy &copy : at->second) {
            const bool own = copy.core == now.core;
            if (own && by_scalar) continue;
            const bool on_its_way = !own && copy.written_back > 0 && !known.covers(copy.core, Pipe::S, copy.written_back);
            if (copy.dirty != 0 || on_its_way) {
                return Overlap{copy.stored, line, line + kScalarLineBytes, copy.core, Space::Gm, Reason::LineShared};
            }
            if (copy.held) copy.newer = {copy.newer.parts | parts, now};
        }
    }
    return std::nullopt;
}

void DataCaches::clean(Copy &copy, uint32_t index, uint32_t parts) {
    if ((copy.dirty & parts) != 0) copy.written_back = index;
    copy.dirty &= ~parts;
    copy.newer.parts &= ~parts;
    if (parts == kAllParts) copy.held = false;
}

void DataCaches::clean(uint32_t core, uint32_t index, std::optional<uint64_t> address) {
    const uint64_t first = address ? line_of(*address) : 0;
    const auto beyond = address ? lines_.upper_bound(first) : lines_.end();
    for (auto at = lines_.lower_bound(first); at != beyond; ++at) {
        const uint32_t parts = address ? parts_of(first, *address, first + kScalarLineBytes) : kAllParts;
        for (Copy &copy : at->second) {
            if (copy.core == core) clean(copy, index, parts);
        }
    }
}

void DataCaches::all_met() {
    for (auto line = lines_.begin(); line != lines_.end();) {
        std::vector<Copy> &copies = line->second;
        copies.erase(std::remove_if(copies.begin(), copies.end(), [](const Copy &copy) { return !copy.held; }), copies.end());
        for (Copy &copy : copies) copy.written_back = 0;
        line = copies.empty() ? lines_.erase(line) : std::next(line);
    }
}

}  // namespace asim
