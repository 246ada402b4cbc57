// Two accesses to the same bytes, one of them a write, in an order that nothing fixes.
#pragma once
#include <cstdint>
#include <vector>

#include "asim/timing/trace_reader.h"

namespace asim {

// Why two accesses in a row are a race all the same.
enum class Reason : uint8_t {
    Unordered,
    Unwritten,      // what the first stored may still be in its core's data cache
    Stale,          // the second may find in its core's data cache what was there before the first
    LineShared,     // lines are written back whole: one of the two may undo the other
    SameBytes,      // none: both write the same
};

struct Overlap {
    uint64_t earlier = 0;           // which record of its block executed first
    uint64_t begin = 0, end = 0;    // bytes in common
    uint32_t block = 0;             // of the earlier record
    Space space = Space::Gm;
    Reason reason = Reason::Unordered;
};

// One side of a race: a record, by its position among those of its block.
struct Side {
    uint32_t block = 0;             // which trace of the launch
    bool cube = false;
    uint64_t ordinal = 0;
    Record record;
    bool writes = false;
};

struct Race {
    Side first, second;             // in the order of execution here
    Space space = Space::Ub;
    uint64_t begin = 0, end = 0;
    Reason reason = Reason::Unordered;
};

// Which parts of global memory are in no race: those that no kernel can write, and the library's own.
class SharedMemory {
public:
    SharedMemory() { add_constant(kMailboxBase, kMailboxBase); }
    void add_constant(uint64_t address, uint64_t bytes) { constant_.push_back({address, address + bytes}); }

    bool ignored(uint64_t begin, uint64_t end) const {
        for (const Range &range : constant_) {
            if (begin >= range.begin && end <= range.end) return true;
        }
        return false;
    }

private:
    struct Range {
        uint64_t begin, end;
    };
    std::vector<Range> constant_;
};

enum class Role : uint8_t { Read, Written, Ignored };

inline bool keeps_value(const Record &record) { return record.op == Op::ScalarAccess && (record.flag_id & kKeepsValue) != 0; }

inline bool names_changes(const Record &record) { return record.op == Op::CopyUbToGm && record.operands == 3; }

// What the record does with operand `index`. A copy to global memory that left some bytes as they were names those it
// changed in its third operand: writing the value that is there already is in no race.
inline Role role_of(const Record &record, uint32_t index) {
    if (keeps_value(record)) return Role::Ignored;
    if (names_changes(record) && index != 1) return index == 2 ? Role::Written : Role::Ignored;
    const bool writes = record.op != Op::ScalarAccess || record.repeats == 1;
    return index == 0 && writes ? Role::Written : Role::Read;
}

}  // namespace asim
