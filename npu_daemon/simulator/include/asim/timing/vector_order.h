// Barriers between vector instructions: which the compiler's automatic synchronisation adds, and which nothing needs.
#pragma once
#include <vector>

#include "asim/timing/trace_reader.h"

namespace asim {

// A vector instruction that reads or writes what an earlier one writes needs a barrier before it. Where the kernel has
// none the compiler inserts it, so leaving it out saves nothing. What waiting for results costs is part of
// vector_start_cycles, which was measured on such chains; a barrier that no instruction needs is paid on top.
class VectorOrder {
public:
    // Takes the next vector instruction; says whether the compiler inserts a barrier before it.
    bool next(const Entry &entry);

    // Takes a barrier of the kernel, before the records of `ahead`; says whether one of them needs it.
    bool barrier(Lookahead &ahead);

    void clear() { written_.clear(); }

private:
    bool follows(const Entry &entry) const;

    std::vector<Operand> written_;      // since the last barrier
};

}  // namespace asim
