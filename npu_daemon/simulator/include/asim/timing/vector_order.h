// Which vector instructions wait for the results of earlier ones.
#pragma once
#include <vector>

#include "asim/timing/trace_reader.h"

namespace asim {

// A vector instruction that reads or writes what an earlier one writes waits until all earlier ones have their results, which costs
// vector_start_cycles, less what every instruction waits for (vector_issue_cycles). Where the kernel has no barrier there the compiler
// inserts one, so that leaving it out saves no wait. One that no instruction needs makes none wait (docs/fidelity.md).
class VectorOrder {
public:
    // Takes the next vector instruction; says whether it waits.
    bool next(const Entry &entry);

    void clear() { written_.clear(), register_written_ = false; }

private:
    bool follows(const Entry &entry) const;

    std::vector<Operand> written_;      // since the last one that waited, as many as may still be on their way
    size_t oldest_ = 0;
    bool register_written_ = false;     // by the latest one: the mask of comparisons, which no operand tells
};

}  // namespace asim
