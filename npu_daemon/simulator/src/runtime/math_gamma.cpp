// Lgamma and Digamma: values in double, and the instructions of the published formulas, counted in its source for dav-2201 (asc-devkit,
// impl/adv_api/detail/math/lgamma and digamma).
#include "asim/numeric/gamma.h"

#include "math_formulas.h"

namespace asim {

namespace {

// `f` of each element, by way of the scratch buffer: the copies examine the operands.
template <typename T, typename F>
void each_value(const Steps<T> &steps, T *dst, const T *src, T *work, F f) {
    steps.template by<Op::Adds>(work, src, 0.0f);
    for (uint32_t i = 0; i < steps.count(); ++i) work[i] = f(work[i]);
    steps.template by<Op::Adds>(dst, work, 0.0f);
}

// c0 x + c1, times x plus the next of `terms` constants, and so on, times x.
void polynomial(Issue &issue, uint32_t terms) {
    issue(Op::Muls, Op::Adds);
    issue.times(terms - 2, Op::Mul, Op::Adds);
    issue(Op::Mul);
}

void compared(Issue &issue) { issue(Op::Duplicate, Op::Compare); }

void in_range(Issue &issue) {
    compared(issue);
    compared(issue);
    issue.on_bits(Op::And);
}

// The values of a branch are added where its mask says so.
void take_branch(Issue &issue) { issue(Op::SetCmpMask, Op::Select, Op::Add); }

// Five ranges of |x|, each with its formula.
void positive_branches(Issue &issue) {
    issue(Op::Duplicate);
    compared(issue);
    polynomial(issue, 7);
    issue(Op::Mul, Op::Add, Op::Ln, Op::Muls);
    take_branch(issue);
    in_range(issue);
    issue(Op::Muls, Op::Adds);
    polynomial(issue, 11);
    take_branch(issue);
    in_range(issue);
    issue(Op::Adds);
    polynomial(issue, 10);
    take_branch(issue);
    in_range(issue);
    issue(Op::Adds);
    polynomial(issue, 4);
    issue(Op::Adds);
    polynomial(issue, 3);
    issue(Op::Adds, Op::Div, Op::Add);
    take_branch(issue);
    in_range(issue);
    issue(Op::Ln, Op::Muls, Op::Adds, Op::Mul, Op::Reciprocal, Op::Mul);
    polynomial(issue, 2);
    issue(Op::Adds, Op::Mul, Op::Adds, Op::Add, Op::Add, Op::Sub);
    take_branch(issue);
    compared(issue);
    take_branch(issue);
}

// ln(pi / |x sin(pi x)|) - lgamma(|x|)
void negative_branches(Issue &issue) {
    issue(Op::Duplicate);
    compared(issue);
    issue(Op::Ln, Op::Muls);
    take_branch(issue);
    issue(Op::Add, Op::Adds, Op::Cast, Op::Muls, Op::Cast, Op::Muls, Op::Sub);
    compared(issue);
    issue.on_bits(Op::Not);
    issue(Op::Muls, Op::Add, Op::Muls, Op::Mul);
    polynomial(issue, 3);
    issue(Op::Mul, Op::Add, Op::Duplicate);
    take_branch(issue);
    polynomial(issue, 4);
    issue(Op::Adds);
    take_branch(issue);
    issue(Op::Abs, Op::Mul, Op::Ln, Op::Muls, Op::Adds, Op::Muls, Op::Add);
    issue(Op::Cast, Op::Compare, Op::Duplicate, Op::Compare);
    issue.on_bits(Op::And);
    compared(issue);
    issue.on_bits(Op::And);
    take_branch(issue);
    issue.on_bits(Op::Not);
    issue.on_bits(Op::And);
    take_branch(issue);
}

void selected(Issue &issue) {
    issue(Op::Duplicate);
    take_branch(issue);
}

// Stirling's series, and reciprocals of x, x + 1 and so on.
void positive_digamma(Issue &issue, uint32_t terms, uint32_t shifts) {
    issue(Op::Adds, Op::Ln, Op::Duplicate, Op::Div, Op::Muls, Op::Sub, Op::Mul, Op::Muls, Op::Sub);
    issue.times(terms, Op::Mul, Op::Muls, Op::Sub);
    issue(Op::Duplicate, Op::Div);
    issue.times(shifts, Op::Adds, Op::Div, Op::Add);
    issue(Op::Sub);
}

void invalid_arguments(Issue &issue) {
    issue(Op::Duplicate, Op::Duplicate);
    compared(issue);
    selected(issue);
    in_range(issue);
    issue(Op::Cast, Op::Compare);
    issue.on_bits(Op::And);
    selected(issue);
    compared(issue);
    compared(issue);
    issue.on_bits(Op::Not);
    issue.on_bits(Op::Not);
    issue.on_bits(Op::And);
    selected(issue);
}

}  // namespace

void issue_lgamma(Issue &issue, float) {
    compared(issue);
    compared(issue);
    issue(Op::Abs, Op::Duplicate);
    positive_branches(issue);
    issue(Op::Duplicate);
    take_branch(issue);
    negative_branches(issue);
    take_branch(issue);
    issue.on_bits(Op::Not);
    issue.on_bits(Op::Not);
    issue.on_bits(Op::And);
    take_branch(issue);
}

void issue_digamma(Issue &issue, float) {
    constexpr uint32_t kTerms = 5, kHalfTerms = 2, kShifts = 9, kHalfShifts = 2;
    const uint32_t terms = issue.half_operands() ? kHalfTerms : kTerms, shifts = issue.half_operands() ? kHalfShifts : kShifts;
    invalid_arguments(issue);
    compared(issue);
    positive_digamma(issue, terms, shifts);
    selected(issue);
    compared(issue);
    issue(Op::Duplicate, Op::Sub);
    positive_digamma(issue, terms, shifts);
    issue(Op::Cast, Op::Sub, Op::Muls, Op::Muls, Op::Div, Op::Sub);
    selected(issue);
    in_range(issue);
    selected(issue);
}

ASIM_FORMULA(Lgamma, 1, false) {
    each_value(steps, dst, src, piece[0], [](T x) { return static_cast<T>(log_gamma(static_cast<float>(x))); });
}

ASIM_FORMULA(Digamma, 1, false) {
    each_value(steps, dst, src, piece[0], [](T x) { return static_cast<T>(digamma(static_cast<float>(x))); });
}

}  // namespace asim
