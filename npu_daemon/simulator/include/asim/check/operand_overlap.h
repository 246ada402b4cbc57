// Results that lie over an operand in a way that the page of their call excludes.
#pragma once
#include <initializer_list>

#include "asim/semantics/composed_call.h"
#include "asim/trace/record.h"

namespace asim {

// Enforces the overlap rule of an instruction's row (trace/instructions.def) on its result, the first operand (asc-devkit,
// docs/zh/api/SIMD-API, general constraints, overlapping addresses). Exempt are results that a binary instruction gathers in its
// second operand, repeats of Cast, where the two differ in width and operators in use rely on it (Cast: "may lead to wrong
// results" when it widens), and operands with gaps between their blocks.
void check_overlap(Op op, uint32_t repeats, std::initializer_list<Operand> operands);

// Bytes that a library call reads or writes; none where `bytes` is 0.
struct Extent {
    const void *base = nullptr;
    uint64_t bytes = 0;
};

// Enforces the row of a library call (check/contracts.def) on its result and what it reads, in the order of the page.
void check_contract(LibraryContract call, Extent dst, std::initializer_list<Extent> sources);

}  // namespace asim
