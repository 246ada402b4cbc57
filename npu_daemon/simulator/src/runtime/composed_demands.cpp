// What library calls that headers compose of instructions demand of their arguments.
#include "asim/semantics/rows.h"
#include "row_bounds.h"

namespace asim {

namespace {

const char *name_of(ComposedCall call) {
    switch (call) {
#define ASIM_NAME(Name) \
    case ComposedCall::Name: return #Name;
        ASIM_COMPOSED_CALLS(ASIM_NAME)
#undef ASIM_NAME
    }
    return "library call";
}

const char *name_of(Quantity what) {
    switch (what) {
#define ASIM_NAME(Name, text) \
    case Quantity::Name: return text;
        ASIM_QUANTITIES(ASIM_NAME)
#undef ASIM_NAME
    }
    return "an extent";
}

bool is_met(Demand demand, uint32_t value, uint32_t bound) {
    switch (demand) {
        case Demand::AtMost:
        case Demand::Most: return value <= bound;
        case Demand::AboveZero: return value != 0;
        case Demand::WholeBlocks: return value % kUbBlockBytes == 0;
        case Demand::Equal: return value == bound;
        case Demand::Multiple: return bound != 0 && value % bound == 0;
        case Demand::Least: return value >= bound;
    }
    return true;
}

// The next multiple of `unit` above `value`.
uint64_t padded(uint32_t value, uint32_t unit) { return unit == 0 ? value : (uint64_t{value} / unit + 1) * unit; }

}  // namespace

void check_matrix(ComposedCall call, Matrix shape) { check_rows(name_of(call), shape.rows, shape.columns); }

void check_scratch(ComposedCall call, Scratch scratch, uint64_t needed_bytes) {
    if (scratch.bytes < needed_bytes) too_little(name_of(call), scratch, needed_bytes);
}

void check_counting(ComposedCall call, Matrix counting, Matrix padded) {
    if (counting.rows <= padded.rows && counting.columns <= padded.columns) return;
    fault(FaultKind::RuntimeFault, name_of(call),
          "%u rows of %u elements count (oriSrcM, oriSrcK), but with padding there are only %u of %u (srcM, srcK)", counting.rows,
          counting.columns, padded.rows, padded.columns);
}

void check_demand(ComposedCall call, Demand demand, uint32_t value, uint32_t bound, Quantity what) {
    if (is_met(demand, value, bound)) return;
    const char *const name = name_of(call), *const of = name_of(what);
    switch (demand) {
        case Demand::AtMost: fault(FaultKind::RuntimeFault, name, "%u elements to compute, but an operand has %u", value, bound);
        case Demand::AboveZero: fault(FaultKind::RuntimeFault, name, "%s is 0, expected at least 1", of);
        case Demand::WholeBlocks:
            fault(FaultKind::RuntimeFault, name, "rows of %u bytes, expected a multiple of 32: pad them to %llu", value,
                  static_cast<unsigned long long>(padded(value, kUbBlockBytes)));
        case Demand::Equal:
            if (what == Quantity::Extent) {
                fault(FaultKind::RuntimeFault, name, "an extent is %u, but that of another operand is %u", value, bound);
            }
            fault(FaultKind::RuntimeFault, name, "%s is %u, expected %u", of, value, bound);
        case Demand::Multiple:
            fault(FaultKind::RuntimeFault, name, "%s is %u, expected a multiple of %u: pad it to %llu", of, value, bound,
                  static_cast<unsigned long long>(padded(value, bound)));
        case Demand::Most: fault(FaultKind::RuntimeFault, name, "%s is %u, expected at most %u: pass no more", of, value, bound);
        case Demand::Least: fault(FaultKind::RuntimeFault, name, "%s is %u, expected at least %u: pass no less", of, value,
                                  bound);
    }
}

}  // namespace asim
