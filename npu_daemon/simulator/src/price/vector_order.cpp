#include "asim/timing/vector_order.h"

namespace asim {

namespace {

constexpr size_t kRemembered = 64;      // results that are not yet there cannot be more

bool overlaps(const Operand &a, const Operand &b) {
    return a.extent_bytes > 0 && b.extent_bytes > 0 && a.space == b.space && a.address < b.address + b.extent_bytes &&
           b.address < a.address + a.extent_bytes;
}

bool ends_the_chain(const Record &record) {
    const bool all = record.target_pipe == static_cast<uint8_t>(Pipe::V) || record.target_pipe == static_cast<uint8_t>(Pipe::ALL);
    return (record.op == Op::PipeBarrier && all) || record.op == Op::SyncAll || record.op == Op::BlockEnd;
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
    if (inserted || written_.size() == kRemembered) written_.clear();
    if (entry.record.operands > 0) written_.push_back(entry.operands[0]);
    return inserted;
}

bool VectorOrder::barrier(Lookahead &ahead) {
    bool needed = false;
    for (size_t i = 0; i < Lookahead::kMost && !needed; ++i) {
        const Entry *entry = ahead.peek(i);
        if (entry == nullptr || ends_the_chain(entry->record)) break;
        needed = info(entry->record.op).pipe == Pipe::V && follows(*entry);
    }
    written_.clear();
    return needed;
}

}  // namespace asim
