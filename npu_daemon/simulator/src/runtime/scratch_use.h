// The temporary buffer of a call whose values are computed otherwise than by the instructions that are priced (ValuesOnly): what those write there
// is lost, as on a device, whatever our own steps needed of it.
#pragma once
#include <algorithm>
#include <cstring>
#include <vector>

#include "asim/check/check.h"
#include "asim/machine/rerun.h"
#include "asim/semantics/math.h"

namespace asim {

class ScratchUse {
public:
    ScratchUse(const char *call, Scratch scratch) : call_(call), scratch_(scratch) {}

    // Bytes that the priced instructions, or the temporary tensors of the published library, take; none behind the buffer.
    void add(uint64_t offset_bytes, uint64_t bytes) {
        if (offset_bytes >= scratch_.bytes || bytes == 0) return;
        const uint64_t inside = std::min<uint64_t>(bytes, scratch_.bytes - offset_bytes);
        checked_ub(call_, scratch_.base + offset_bytes, inside);
        ranges_.push_back({scratch_.base + offset_bytes, inside});
    }

    // Faults where an operand lies there, too: the pages of these calls forbid it, and on a device it would be overwritten.
    void must_not_hold(const uint8_t *operand, uint64_t bytes) const {
        if (operand == nullptr) return;
        const auto first = reinterpret_cast<uintptr_t>(operand);
        for (const Range &range : ranges_) {
            const auto base = reinterpret_cast<uintptr_t>(range.base);
            if (first >= base + range.bytes || base >= first + bytes) continue;
            fault(FaultKind::RuntimeFault, call_, "an operand overlaps the temporary buffer, which this call forbids: it writes %llu bytes there",
                  static_cast<unsigned long long>(range.bytes));
        }
    }

    // As memory that was never written, so that reruns tell a kernel that reads it.
    void lose() const {
        for (const Range &range : ranges_) std::memset(range.base, rerun().poison, range.bytes);
    }

private:
    struct Range {
        uint8_t *base;
        uint64_t bytes;
    };
    const char *call_;
    Scratch scratch_;
    std::vector<Range> ranges_;
};

}  // namespace asim
