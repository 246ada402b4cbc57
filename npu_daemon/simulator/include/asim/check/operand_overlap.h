// Vector instructions whose result lies over an operand that they have yet to read.
#pragma once
#include <initializer_list>

#include "asim/trace/record.h"

namespace asim {

// Element by element, with operands that the trace describes as repeats: what the rule below is for.
constexpr bool element_wise(Op op) { return info(op).operands == Operands::ElementWise; }

// A fault when the result, the first operand, overlaps another one in a way that the documentation excludes (asc-devkit,
// docs/zh/api/SIMD-API, general constraints, overlapping addresses): a repeat must not write what a later one reads, and in one
// repeat the two are the same or apart. Exempt are results that a binary instruction gathers in its second operand, repeats of
// Cast, where the two differ in width and operators in use rely on it (Cast: "may lead to wrong results" when it widens), and
// operands with gaps between their blocks.
void check_overlap(Op op, uint32_t repeats, std::initializer_list<Operand> operands);

}  // namespace asim
