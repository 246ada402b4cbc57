// Trigonometric functions and their inverses.
#include "math_formulas.h"

namespace asim {

namespace {

constexpr float kHalfPi = 1.5707963267948966f;
// pi in parts, so that a small multiple of all but the last is exact.
constexpr float kPiParts[] = {3.140625f, 0.0009670257568359375f, 6.2771141529083252e-7f, 1.2154201256553420e-10f};

// rest = x - whole pi; `rest` must not be `whole`, `scratch` neither.
template <typename T>
void subtract_pi(const Steps<T> &steps, T *rest, const T *x, const T *whole, T *scratch) {
    const T *from = x;
    for (const float part : kPiParts) {
        steps.template by<Op::Muls>(scratch, whole, part);
        steps.template two<Op::Sub>(rest, from, scratch);
        from = rest;
    }
}

// angle becomes sin(angle) for |angle| <= pi / 2; `square` and `sum` are overwritten.
template <typename T>
void sine_in_place(const Steps<T> &steps, T *angle, T *square, T *sum) {
    steps.template two<Op::Mul>(square, angle, angle);
    steps.polynomial(sum, square, {-2.5052108e-8f, 2.7557319e-6f, -1.9841270e-4f, 8.3333333e-3f, -1.6666667e-1f, 1.0f});
    steps.template two<Op::Mul>(angle, angle, sum);
}

// whole becomes (-1)^whole.
template <typename T>
void alternate(const Steps<T> &steps, T *whole, T *scratch) {
    steps.template by<Op::Muls>(scratch, whole, 0.5f);
    steps.round(scratch, scratch, RoundMode::CAST_FLOOR);
    steps.template by<Op::Muls>(scratch, scratch, 4.0f);
    steps.template by<Op::Muls>(whole, whole, -2.0f);
    steps.template two<Op::Add>(whole, whole, scratch);
    steps.template by<Op::Adds>(whole, whole, 1.0f);
}

// dst = sin(x + phase) for a phase of 0 or pi / 2.
template <typename T>
void sine(const Steps<T> &steps, T *dst, const T *src, const Pieces<T> &piece, float phase) {
    T *whole = piece[0], *rest = piece[1], *other = piece[2];
    steps.template by<Op::Muls>(whole, src, 0.3183098861837907f);
    if (phase != 0.0f) steps.template by<Op::Adds>(whole, whole, 0.5f);
    steps.round(whole, whole, RoundMode::CAST_RINT);
    subtract_pi(steps, rest, src, whole, other);
    if (phase != 0.0f) steps.template by<Op::Adds>(rest, rest, phase);
    alternate(steps, whole, other);
    steps.template two<Op::Mul>(whole, whole, rest);    // the sine is odd: fold its sign into the angle
    sine_in_place(steps, whole, rest, other);
    steps.template by<Op::Mins>(dst, whole, 1.0f);
    steps.template by<Op::Maxs>(dst, dst, -1.0f);
}

// root = min(|x|, sqrt((1 - |x|) / 2)): the argument at which asin is evaluated.
template <typename T>
void asin_argument(const Steps<T> &steps, T *root, const T *x, T *scratch) {
    steps.template one<Op::Abs>(scratch, x);
    steps.template by<Op::Muls>(root, scratch, -0.5f);
    steps.template by<Op::Adds>(root, root, 0.5f);
    steps.template one<Op::Sqrt>(root, root);
    steps.template two<Op::Min>(root, root, scratch);
}

// flag = |x| > bound ? 1 : 0, by arithmetic.
template <typename T>
void above(const Steps<T> &steps, T *flag, const T *x, float bound) {
    constexpr float kHuge = 1.2676506e30f;
    steps.template one<Op::Abs>(flag, x);
    steps.template by<Op::Adds>(flag, flag, -bound);
    steps.template by<Op::Maxs>(flag, flag, 0.0f);
    steps.template by<Op::Muls>(flag, flag, kHuge);
    steps.template by<Op::Mins>(flag, flag, 1.0f);
}

// value *= sgn(x)
template <typename T>
void give_sign(const Steps<T> &steps, T *value, const T *x, T *sign, T *scratch) {
    constexpr float kTiny = 1e-30f;
    steps.template by<Op::Adds>(sign, x, kTiny);
    steps.template one<Op::Abs>(scratch, sign);
    steps.template two<Op::Div>(sign, sign, scratch);
    steps.template two<Op::Mul>(value, value, sign);
}

// piece[0] = asin(x)
template <typename T>
void arc_sine(const Steps<T> &steps, const T *x, const Pieces<T> &piece) {
    T *value = piece[0], *square = piece[1], *sum = piece[2];
    asin_argument(steps, value, x, square);
    steps.template two<Op::Mul>(square, value, value);
    steps.polynomial(sum, square, {4.2163199048e-2f, 2.4181311049e-2f, 4.5470025998e-2f, 7.4953002686e-2f,
                                   1.6666752422e-1f, 0.0f});
    steps.template two<Op::Mul>(sum, sum, value);
    steps.template two<Op::Add>(value, value, sum);
    above(steps, square, x, 0.5f);                      // there: pi / 2 - 2 value
    steps.template by<Op::Muls>(sum, value, -3.0f);
    steps.template by<Op::Adds>(sum, sum, kHalfPi);
    steps.template two<Op::Mul>(sum, sum, square);
    steps.template two<Op::Add>(value, value, sum);
    give_sign(steps, value, x, square, sum);
}

}  // namespace

ASIM_FORMULA(Sin, 3, false) { sine(steps, dst, src, piece, 0.0f); }
ASIM_FORMULA(Cos, 3, false) { sine(steps, dst, src, piece, kHalfPi); }

// sin(r) / cos(r) with r = x - k pi and cos(r) = sin(pi / 2 - |r|).
ASIM_FORMULA(Tan, 4, false) {
    T *whole = piece[0], *rest = piece[1], *other = piece[2], *sum = piece[3];
    steps.template by<Op::Muls>(whole, src, 0.3183098861837907f);
    steps.round(whole, whole, RoundMode::CAST_RINT);
    subtract_pi(steps, rest, src, whole, other);
    steps.template one<Op::Abs>(whole, rest);
    steps.template by<Op::Muls>(whole, whole, -1.0f);
    for (const float part : kPiParts) steps.template by<Op::Adds>(whole, whole, part * 0.5f);
    sine_in_place(steps, whole, other, sum);
    sine_in_place(steps, rest, other, sum);
    steps.template two<Op::Div>(dst, rest, whole);
}

ASIM_FORMULA(Asin, 3, false) {
    arc_sine(steps, src, piece);
    steps.template by<Op::Adds>(dst, piece[0], 0.0f);
}

// pi / 2 - asin(x)
ASIM_FORMULA(Acos, 3, false) {
    arc_sine(steps, src, piece);
    steps.template by<Op::Muls>(dst, piece[0], -1.0f);
    steps.template by<Op::Adds>(dst, dst, kHalfPi);
}

// atan(x) = asin-free: y = |x| or 1 / |x|, then (y - 1) / (y + 1) shifts the upper half of [0, 1] to a small range.
ASIM_FORMULA(Atan, 4, false) {
    constexpr float kTan8thPi = 0.4142135623730950f;
    T *y = piece[0], *square = piece[1], *sum = piece[2], *value = piece[3];
    steps.template one<Op::Abs>(y, src);
    steps.template by<Op::Maxs>(square, y, 1.0f);
    steps.template by<Op::Mins>(y, y, 1.0f);
    steps.template two<Op::Div>(y, y, square);          // min(|x|, 1) / max(|x|, 1)
    above(steps, value, y, kTan8thPi);
    steps.template by<Op::Adds>(square, y, 1.0f);       // where above: (y - 1) / (y + 1), else y
    steps.template by<Op::Adds>(sum, y, -1.0f);
    steps.template two<Op::Div>(square, sum, square);
    steps.template two<Op::Sub>(square, square, y);
    steps.template two<Op::Mul>(square, square, value);
    steps.template two<Op::Add>(y, y, square);
    steps.template by<Op::Muls>(value, value, 0.7853981633974483f);
    steps.template two<Op::Mul>(square, y, y);
    steps.polynomial(sum, square, {8.05374449538e-2f, -1.38776856032e-1f, 1.99777106478e-1f, -3.33329491539e-1f, 1.0f});
    steps.template two<Op::Mul>(sum, sum, y);
    steps.template two<Op::Add>(value, value, sum);
    above(steps, y, src, 1.0f);                         // there: pi / 2 - value
    steps.template by<Op::Muls>(sum, value, -2.0f);
    steps.template by<Op::Adds>(sum, sum, kHalfPi);
    steps.template two<Op::Mul>(sum, sum, y);
    steps.template two<Op::Add>(value, value, sum);
    give_sign(steps, value, src, y, sum);
    steps.template by<Op::Adds>(dst, value, 0.0f);
}

}  // namespace asim
