// Barriers between vector instructions: which the compiler's automatic synchronisation adds.
#pragma once
#include <vector>

#include "asim/timing/trace_reader.h"

namespace asim {

// A vector instruction that reads or writes what an earlier one writes needs a barrier before it. Where the kernel has
// none the compiler inserts it, so leaving it out saves nothing. Waiting for results costs vector_start_cycles, less what
// every instruction waits for (vector_issue_cycles); a barrier that no instruction needs costs the same.
class VectorOrder {
public:
    // Takes the next vector instruction; says whether the compiler inserts a barrier before it.
    bool next(const Entry &entry);

    void clear() { written_.clear(); }

private:
    bool follows(const Entry &entry) const;

    std::vector<Operand> written_;      // since the last barrier
};

}  // namespace asim
