// Hyperbolic functions, activations, logarithms and the error function.
#include "asim/machine/block.h"
#include "math_formulas.h"

namespace asim {

Scratch remaining_scratch() {
    const Block &self = block();
    if (self.ub_used_bytes >= self.ub_bytes) return {self.ub + self.ub_bytes, 0};
    return {self.ub + self.ub_used_bytes, static_cast<uint32_t>(self.ub_bytes - self.ub_used_bytes)};
}

// (e^2x - 1) / (e^2x + 1), with x clipped to where the result is +-1.
ASIM_FORMULA(Tanh, 1, false) {
    constexpr float kSaturated = 8.8f;
    T *power = piece[0];
    steps.template by<Op::Mins>(power, src, kSaturated);
    steps.template by<Op::Maxs>(power, power, -kSaturated);
    steps.template by<Op::Muls>(power, power, 2.0f);
    steps.template one<Op::Exp>(power, power);
    steps.template by<Op::Adds>(dst, power, -1.0f);
    steps.template by<Op::Adds>(power, power, 1.0f);
    steps.template two<Op::Div>(dst, dst, power);
}

// 1 / (1 + e^-x)
ASIM_FORMULA(Sigmoid, 1, true) {
    T *one = piece[0];
    steps.template by<Op::Muls>(dst, src, -1.0f);
    steps.template one<Op::Exp>(dst, dst);
    steps.template by<Op::Adds>(dst, dst, 1.0f);
    steps.fill(one, 1.0f);
    steps.template two<Op::Div>(dst, one, dst);
}

// x / (1 + e^(-beta x))
ASIM_FORMULA(Swish, 1, true) {
    T *divisor = piece[0];
    steps.template by<Op::Muls>(divisor, src, -parameter);
    steps.template one<Op::Exp>(divisor, divisor);
    steps.template by<Op::Adds>(divisor, divisor, 1.0f);
    steps.template two<Op::Div>(dst, src, divisor);
}

// x / (1 + e^(-2 sqrt(2 / pi) (x + 0.044715 x^3))): the tanh approximation.
ASIM_FORMULA(Gelu, 1, false) {
    T *divisor = piece[0];
    steps.template two<Op::Mul>(divisor, src, src);
    steps.template two<Op::Mul>(divisor, divisor, src);
    steps.template by<Op::Muls>(divisor, divisor, 0.044715f);
    steps.template two<Op::Add>(divisor, divisor, src);
    steps.template by<Op::Muls>(divisor, divisor, -1.5957691216f);
    steps.template one<Op::Exp>(divisor, divisor);
    steps.template by<Op::Adds>(divisor, divisor, 1.0f);
    steps.template two<Op::Div>(dst, src, divisor);
}

// x / (1 + e^(-1.702 x)): the instructions of asc-devkit, adv_api/detail/activation/gelu.
ASIM_FORMULA(FasterGelu, 1, true) {
    T *divisor = piece[0];
    steps.template by<Op::Muls>(divisor, src, -1.702f);
    steps.template one<Op::Exp>(divisor, divisor);
    steps.template by<Op::Adds>(divisor, divisor, 1.0f);
    steps.template two<Op::Div>(dst, src, divisor);
}

// x (sgn(x) (a (min(|0.7071 x|, -b) + b)^2 + 0.5) + 0.5) with a = -0.1444 and b = -1.769
ASIM_FORMULA(FasterGeluV2, 2, true) {
    constexpr float kTiny = 1e-7f;
    T *sign = piece[0], *curve = piece[1];
    steps.template by<Op::Adds>(sign, src, kTiny);
    steps.template one<Op::Abs>(curve, sign);
    steps.template two<Op::Div>(sign, sign, curve);
    steps.template by<Op::Muls>(curve, src, 0.7071f);
    steps.template one<Op::Abs>(curve, curve);
    steps.template by<Op::Mins>(curve, curve, 1.769f);
    steps.template by<Op::Adds>(curve, curve, -1.769f);
    steps.template two<Op::Mul>(curve, curve, curve);
    steps.template by<Op::Muls>(curve, curve, -0.1444f);
    steps.template by<Op::Adds>(curve, curve, 0.5f);
    steps.template two<Op::Mul>(curve, curve, sign);
    steps.template by<Op::Adds>(curve, curve, 0.5f);
    steps.template two<Op::Mul>(dst, src, curve);
}

ASIM_FORMULA(Log2, 0, false) {
    (void)piece;
    steps.template one<Op::Ln>(dst, src);
    steps.template by<Op::Muls>(dst, dst, 1.4426950408889634f);
}

ASIM_FORMULA(Log10, 0, true) {
    (void)piece;
    steps.template one<Op::Ln>(dst, src);
    steps.template by<Op::Muls>(dst, dst, 0.4342944819032518f);
}

// e^floor(x) (1 + r + r^2 / 2 + ...) with r the fraction and `parameter` the degree.
ASIM_FORMULA(ExpPrecise, 3, false) {
    T *whole = piece[0], *rest = piece[1], *sum = piece[2];
    steps.round(whole, src, RoundMode::CAST_FLOOR);
    steps.template two<Op::Sub>(rest, src, whole);
    steps.template one<Op::Exp>(whole, whole);
    const int degree = std::max(static_cast<int>(parameter), 1);
    steps.template by<Op::Muls>(sum, rest, 1.0f / static_cast<float>(degree));
    for (int term = degree - 1; term > 0; --term) {
        steps.template by<Op::Adds>(sum, sum, 1.0f);
        steps.template two<Op::Mul>(sum, sum, rest);
        steps.template by<Op::Muls>(sum, sum, 1.0f / static_cast<float>(term));
    }
    steps.template by<Op::Adds>(sum, sum, 1.0f);
    steps.template two<Op::Mul>(dst, sum, whole);
}

// e^(x - ln 2) - e^(-x - ln 2), so that large x do not overflow early.
ASIM_FORMULA(Sinh, 1, false) {
    constexpr float kLn2 = 0.6931471805599453f;
    T *mirrored = piece[0];
    steps.template by<Op::Muls>(mirrored, src, -1.0f);
    steps.template by<Op::Adds>(mirrored, mirrored, -kLn2);
    steps.template one<Op::Exp>(mirrored, mirrored);
    steps.template by<Op::Adds>(dst, src, -kLn2);
    steps.template one<Op::Exp>(dst, dst);
    steps.template two<Op::Sub>(dst, dst, mirrored);
}

ASIM_FORMULA(Cosh, 1, false) {
    constexpr float kLn2 = 0.6931471805599453f;
    T *mirrored = piece[0];
    steps.template by<Op::Muls>(mirrored, src, -1.0f);
    steps.template by<Op::Adds>(mirrored, mirrored, -kLn2);
    steps.template one<Op::Exp>(mirrored, mirrored);
    steps.template by<Op::Adds>(dst, src, -kLn2);
    steps.template one<Op::Exp>(dst, dst);
    steps.template two<Op::Add>(dst, dst, mirrored);
}

// sgn(x) ln(|x| + sqrt(x^2 + 1))
ASIM_FORMULA(Asinh, 2, false) {
    constexpr float kTiny = 1e-30f;
    T *magnitude = piece[0], *root = piece[1];
    steps.template one<Op::Abs>(magnitude, src);
    steps.template two<Op::Mul>(root, src, src);
    steps.template by<Op::Adds>(root, root, 1.0f);
    steps.template one<Op::Sqrt>(root, root);
    steps.template two<Op::Add>(root, root, magnitude);
    steps.template one<Op::Ln>(root, root);
    steps.template by<Op::Adds>(magnitude, magnitude, kTiny);
    steps.template two<Op::Div>(magnitude, src, magnitude);
    steps.template two<Op::Mul>(dst, root, magnitude);
}

// ln(x + sqrt(x^2 - 1))
ASIM_FORMULA(Acosh, 1, false) {
    T *root = piece[0];
    steps.template two<Op::Mul>(root, src, src);
    steps.template by<Op::Adds>(root, root, -1.0f);
    steps.template one<Op::Sqrt>(root, root);
    steps.template two<Op::Add>(dst, src, root);
    steps.template one<Op::Ln>(dst, dst);
}

// ln((1 + x) / (1 - x)) / 2
ASIM_FORMULA(Atanh, 1, false) {
    T *below = piece[0];
    steps.template by<Op::Muls>(below, src, -1.0f);
    steps.template by<Op::Adds>(below, below, 1.0f);
    steps.template by<Op::Adds>(dst, src, 1.0f);
    steps.template two<Op::Div>(dst, dst, below);
    steps.template one<Op::Ln>(dst, dst);
    steps.template by<Op::Muls>(dst, dst, 0.5f);
}

// A rational function of x on [-3.92, 3.92], beyond which erf is +-1 in float (coefficients: Eigen, Cephes).
ASIM_FORMULA(Erf, 3, false) {
    constexpr float kSaturated = 3.92f;
    T *x = piece[0], *square = piece[1], *above = piece[2];
    steps.template by<Op::Mins>(x, src, kSaturated);
    steps.template by<Op::Maxs>(x, x, -kSaturated);
    steps.template two<Op::Mul>(square, x, x);
    steps.polynomial(above, square, {-2.72614225801306e-10f, 2.77068142495902e-08f, -2.10102402082508e-06f,
                                     -5.69250639462346e-05f, -7.34990630326855e-04f, -2.95459980854025e-03f,
                                     -1.60960333262415e-02f});
    steps.template two<Op::Mul>(above, above, x);
    steps.polynomial(x, square, {-1.45660718464996e-05f, -2.13374055278905e-04f, -1.68282697438203e-03f,
                                 -7.37332916720468e-03f, -1.42647390514189e-02f});
    steps.template two<Op::Div>(dst, above, x);
    steps.template by<Op::Mins>(dst, dst, 1.0f);
    steps.template by<Op::Maxs>(dst, dst, -1.0f);
}

// e^-x^2 times a polynomial of 1 / (1 + |x| / 2) for |x|, mirrored for negative x (Numerical Recipes, erfcc).
ASIM_FORMULA(Erfc, 3, false) {
    constexpr float kUnderflow = 10.1f, kTiny = 1e-30f;
    T *magnitude = piece[0], *t = piece[1], *sum = piece[2];
    steps.template one<Op::Abs>(magnitude, src);
    steps.template by<Op::Mins>(magnitude, magnitude, kUnderflow);
    steps.template by<Op::Muls>(t, magnitude, 0.5f);
    steps.template by<Op::Adds>(t, t, 1.0f);
    steps.fill(sum, 1.0f);
    steps.template two<Op::Div>(t, sum, t);
    steps.polynomial(sum, t, {0.17087277f, -0.82215223f, 1.48851587f, -1.13520398f, 0.27886807f, -0.18628806f,
                              0.09678418f, 0.37409196f, 1.00002368f, -1.26551223f});
    steps.template two<Op::Mul>(magnitude, magnitude, magnitude);
    steps.template two<Op::Sub>(sum, sum, magnitude);
    steps.template one<Op::Exp>(sum, sum);
    steps.template two<Op::Mul>(sum, sum, t);                   // erfc(|x|)
    steps.template by<Op::Adds>(t, src, kTiny);
    steps.template one<Op::Abs>(magnitude, t);
    steps.template two<Op::Div>(t, t, magnitude);               // sign
    steps.template two<Op::Mul>(sum, sum, t);
    steps.template by<Op::Muls>(t, t, -1.0f);
    steps.template by<Op::Adds>(t, t, 1.0f);                    // 0 or 2
    steps.template two<Op::Add>(dst, sum, t);
}

}  // namespace asim
