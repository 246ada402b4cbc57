// Unified buffer bank conflicts of a vector instruction, from its real addresses.
#pragma once
#include <vector>

#include "asim/timing/trace_reader.h"

namespace asim {

struct BankCycles {
    double cycles = 1;          // of one repeat
    double group_cycles = 1;    // what it would take if only accesses to one bank group got in each other's way
};

// Cycles per repeat that operand accesses need on average: 1 without conflicts. Slot model of
// docs/hardware.md section 7: slot t reads repeat t of the sources and writes repeat t-1 of the destination;
// a bank group serves one row per cycle, and a read and a write of the same bank exclude each other. An instruction that takes
// its repeats in `parts`, at most one for each data block, reads and writes a part in each slot.
BankCycles bank_cycles_per_repeat(const Entry &entry, uint32_t parts);

// The same, remembering what it was for the latest instructions: those of a loop come back with the same operands, on all cores.
class BankConflicts {
public:
    const BankCycles &cycles_per_repeat(const Entry &entry, uint32_t parts);

private:
    struct Known {
        Entry entry{};      // what the figures below are those of; with no operand before the first use
        uint32_t parts = 1;
        BankCycles cycles;
    };
    static constexpr size_t kPlaces = 1024;
    std::vector<Known> known_{kPlaces};
};

}  // namespace asim
