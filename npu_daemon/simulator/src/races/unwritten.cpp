#include "asim/races/unwritten.h"

#include <algorithm>
#include <vector>

#include "asim/races/footprint.h"

namespace asim {

namespace {

// Which blocks of 32 bytes of a core's unified buffer were written.
class Written {
public:
    void add(uint64_t begin, uint64_t end) {
        const uint64_t beyond = block_behind(end);
        for (uint64_t block = begin / kBytes; block < beyond; ++block) blocks_[block] = true;
    }

    // Whether at most half of the blocks in [begin, end) were written: a tail that is read with a tile, and lanes that a mask
    // leaves out, are none of a kernel's faults.
    bool lacks_half_of(uint64_t begin, uint64_t end) const {
        const uint64_t first = begin / kBytes, beyond = block_behind(end);
        if (first >= beyond) return false;
        const auto count = static_cast<uint64_t>(std::count(blocks_.begin() + first, blocks_.begin() + beyond, true));
        return 2 * count <= beyond - first;
    }

private:
    static constexpr uint64_t kBytes = 32, kBlocks = (uint64_t{1} << 20) / kBytes;     // more than any chip has

    static uint64_t block_behind(uint64_t end) { return std::min((std::min(end, kBlocks * kBytes) + kBytes - 1) / kBytes, kBlocks); }

    std::vector<bool> blocks_ = std::vector<bool>(kBlocks);
};

template <typename F>
void for_each_ub_run(const Entry &entry, Role role, F f) {
    for (uint32_t i = 0; i < entry.record.operands; ++i) {
        const bool ub = entry.operands[i].space == static_cast<uint64_t>(Space::Ub);
        if (ub && role_of(entry.record, i) == role) for_each_run(entry, i, f);
    }
}

}  // namespace

std::optional<UnwrittenRead> first_unwritten_read(const Trace &trace) {
    const Composition composition = trace.composition();
    for (uint32_t core = 0; core < trace.block_count(); ++core) {
        Written written;
        Cursor cursor(trace, core);
        for (Entry entry; cursor.next(entry);) {
            std::optional<UnwrittenRead> found;
            for_each_ub_run(entry, Role::Read, [&](uint64_t begin, uint64_t end) {
                if (found || !written.lacks_half_of(begin, end)) return;
                found.emplace();
                found->begin = begin;
                found->end = end;
            });
            if (found) {
                found->side.block = core;
                found->side.cube = core % composition.cores() < composition.cubes;
                found->side.ordinal = cursor.ordinal();
                found->side.record = entry.record;
                return found;
            }
            for_each_ub_run(entry, Role::Written, [&](uint64_t begin, uint64_t end) { written.add(begin, end); });
        }
    }
    return std::nullopt;
}

}  // namespace asim
