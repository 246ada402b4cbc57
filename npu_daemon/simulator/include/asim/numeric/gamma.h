// Logarithm of the gamma function and its derivative, the same on every host: computed in double by recurrence and Stirling's series.
#pragma once
#include <limits>

#include "asim/numeric/transcendental.h"

namespace asim {

namespace binary64 {

constexpr double kPi = 3.141592653589793;

// ln(x) of a normal x > 0: the exponent, and 2 artanh((m - 1) / (m + 1)) of the fraction up to the 19th power.
inline double natural_logarithm(double x) {
    constexpr double kRoot = 1.4142135623730951;
    const uint64_t bits = bits_of(x);
    int exponent = static_cast<int>(bits >> kFractionBits & 0x7ff) - 1023;
    double fraction = from_bits((bits & ((1ull << kFractionBits) - 1)) | kOne);
    if (fraction > kRoot) fraction /= 2, ++exponent;
    const double s = (fraction - 1) / (fraction + 1), square = s * s;
    double sum = 0;
    for (int power = 19; power >= 1; power -= 2) sum = sum * square + 1.0 / power;
    return exponent * kLn2 + 2 * s * sum;
}

// sin(pi f) and cos(pi f) for 0 <= f <= 1/2, by their Taylor series.
inline double sine_of_turn(double f) {
    const double x = kPi * f, square = x * x;
    double term = x, sum = x;
    for (int n = 2; n < 20; n += 2) sum += term *= -square / (n * (n + 1));
    return sum;
}
inline double cosine_of_turn(double f) { return sine_of_turn(0.5 - f); }

// The distance of x from the integer below.
inline double fraction_of(double x) {
    const double whole = static_cast<double>(static_cast<int64_t>(x));
    return x < whole ? x - whole + 1 : x - whole;
}

constexpr double kAsymptotic = 10.0;        // from here on seven terms of the series are enough

// ln(Gamma(x)) for x > 0; the two zeros are exact, as they are in the published formulas for float.
inline double log_gamma(double x) {
    if (x == 1 || x == 2) return 0;
    double product = 1;
    for (; x < kAsymptotic; x += 1) product *= x;
    const double inverse = 1 / x, square = inverse * inverse;
    const double series = inverse * (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square * (1.0 / 1680 - square / 1188))));
    return (x - 0.5) * natural_logarithm(x) - x + 0.91893853320467274 + series - natural_logarithm(product);
}

// d/dx ln(Gamma(x)) for x > 0.
inline double digamma(double x) {
    double sum = 0;
    for (; x < kAsymptotic; x += 1) sum += 1 / x;
    const double square = 1 / (x * x);
    const double series = square * (1.0 / 12 - square * (1.0 / 120 - square * (1.0 / 252 - square * (1.0 / 240 - square / 132))));
    return natural_logarithm(x) - 0.5 / x - series - sum;
}

constexpr double kIntegers = 8388608.0;     // 2^23: floats beyond have no fraction

}  // namespace binary64

inline float log_gamma(float value) {
    using namespace binary64;
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const double x = value;
    if (value != value) return value;
    if (value == kInfinity || value == -kInfinity || value == 0 || x <= -kIntegers) return kInfinity;
    if (x > 0) return static_cast<float>(log_gamma(x));
    const double fraction = fraction_of(x);
    if (fraction == 0) return kInfinity;
    const double sine = sine_of_turn(fraction > 0.5 ? 1 - fraction : fraction);
    return static_cast<float>(natural_logarithm(kPi / sine) - log_gamma(1 - x));
}

inline float digamma(float value) {
    using namespace binary64;
    constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
    const double x = value;
    if (value != value || value == kInfinity) return value;
    if (value == 0) return __builtin_signbit(value) ? kInfinity : -kInfinity;
    if (x > 0) return static_cast<float>(digamma(x));
    const double fraction = fraction_of(x);
    if (x <= -kIntegers || fraction == 0) return kNan;
    const double nearer = fraction > 0.5 ? 1 - fraction : fraction;
    const double cotangent = cosine_of_turn(nearer) / sine_of_turn(nearer);
    return static_cast<float>(digamma(1 - x) - kPi * (fraction > 0.5 ? -cotangent : cotangent));
}

}  // namespace asim
