#include "asim/timing/vector_order.h"

namespace asim {

namespace {

constexpr size_t kRememberedResults = 64;      // results that are not yet there cannot be more

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
    const bool inserted = follows(entry);
    if (inserted || written_.size() == kRememberedResults) written_.clear();
    if (entry.record.operands > 0) written_.push_back(entry.operands[0]);
    return inserted;
}

}  // namespace asim
