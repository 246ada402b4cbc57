#include "asim/timing/vector_order.h"

namespace asim {

namespace {

constexpr size_t kRememberedResults = 8;       // an instruction takes at least 6 cycles, and its results are there some 25 later

bool overlaps(const Operand &a, const Operand &b) {
    return a.extent_bytes > 0 && b.extent_bytes > 0 && a.space == b.space && a.address < b.address + b.extent_bytes &&
           b.address < a.address + a.extent_bytes;
}

}  // namespace

bool VectorOrder::follows(const Entry &entry) const {
    for (uint32_t i = 0; i < entry.record.operands; ++i) {
        for (const Operand &written : written_) {
            if (overlaps(entry.operands[i], written)) return true;
        }
    }
    return false;
}

bool VectorOrder::next(const Entry &entry) {
    const bool waits = register_written_ || follows(entry);
    register_written_ = entry.record.operands > 0 && entry.operands[0].extent_bytes == 0 && entry.record.repeats > 0;
    if (waits) written_.clear();
    if (entry.record.operands == 0) return waits;
    if (written_.size() < kRememberedResults) {
        written_.push_back(entry.operands[0]);
    } else {
        written_[oldest_++ % kRememberedResults] = entry.operands[0];
    }
    return waits;
}

}  // namespace asim
