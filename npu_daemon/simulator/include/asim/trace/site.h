// How a trace is written down: what a place of the kernel issues again and again is named once.
//
// A segment stands for itself. It is a sequence of codes, each a number of variable length (seven bits a byte, the
// lowest first, the highest bit set in all but the last byte):
//   0          a record follows, it and its operands as they are in memory, then its scalar work as changed from none:
//              a site, numbered from 0; beyond kMaxSites the oldest number is used again
//   odd  c     (c >> 1) + 1 records as foreseen: the site that followed the last one when it was the last one before, all
//              addresses and counts as foreseen there
//   even c     site (c >> 1) - 1 once more, but for what the next byte says, one bit each: addresses of operands (the
//              difference from the foreseen one, sign in the lowest bit), then the scalar work
// Changed scalar work is a number with one bit for each class whose count is another one, then those counts.
// Foreseen are the counts of last time, and addresses that move by the step before the last one: steps that stay the
// same, and two that take turns, as with two buffers.
#pragma once
#include <utility>

#include "asim/trace/record.h"

namespace asim {

constexpr uint16_t kMaxSites = 1024;            // of a segment
constexpr uint16_t kNoSite = kMaxSites;
constexpr double kUnknownCycles = -1;
constexpr uint64_t kAddressMask = (1ull << 56) - 1;
constexpr uint8_t kScalarChanged = 1u << kMaxOperands;

// What of a record has to be looked at, beside its own work.
enum class RecordKind : uint8_t {
    Flag,           // SetFlag and WaitFlag
    Copy,           // of global memory
    Access,         // of the scalar unit
    Ordering,       // vector instructions, barriers: what the vector pipe works in the order of
    Other
};

struct Entry {
    Record record;
    Pipe pipe = Pipe::S;                        // that takes it; S for what the scalar unit does itself
    RecordKind kind = RecordKind::Other;
    uint8_t known = 0;                          // operands all of whose bytes it touches, one bit each
    uint16_t flag = 0;                          // of SetFlag and WaitFlag: those of a block are numbered by its reader, from 1 on
    uint16_t next = kNoSite;                    // the site that followed last time
    Operand operands[kMaxOperands];

    Entry() = default;
    Entry(const Entry &other) { *this = other; }
    Entry &operator=(const Entry &other) {
        record = other.record;
        pipe = other.pipe;
        kind = other.kind;
        known = other.known;
        flag = other.flag;
        next = other.next;
        for (uint32_t i = 0; i < record.operands; ++i) operands[i] = other.operands[i];
        return *this;
    }
};

// What is read again and again lies in front: a line of the host's cache holds it for most sites, one more the steps.
struct alignas(64) Site {
    double scalar_cycles = kUnknownCycles;      // of its scalar work, where a reader prices it
    Entry entry;                                // as it was last time
    ScalarCounts scalar{};
    alignas(64) uint64_t steps[kMaxOperands][2] = {};   // of its addresses: the last step, and the one before

    uint64_t foreseen(uint32_t operand) const { return (entry.operands[operand].address + steps[operand][1]) & kAddressMask; }

    // `address` is less than 2^56.
    void move(uint32_t operand, uint64_t address) {
        const uint64_t step = address - entry.operands[operand].address;
        steps[operand][1] = steps[operand][0];
        steps[operand][0] = step;
        entry.operands[operand].address = address;
    }

    void move_as_foreseen() {
        for (uint32_t i = 0; i < entry.record.operands; ++i) {
            entry.operands[i].address = foreseen(i);
            std::swap(steps[i][0], steps[i][1]);
        }
    }
};

}  // namespace asim
