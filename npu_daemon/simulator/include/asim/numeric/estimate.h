// Reciprocal and Rsqrt as the vector unit has them: eight bits, for whatever an interval of eight bits holds. On devices the
// result is the reciprocal, or that of the root, of the interval's middle (docs/fidelity.md, device verdicts).
#pragma once
#include <cmath>

namespace asim {

constexpr const char *kEstimatedWithin = "0.0034";     // of the value, at most: 0.0033 of a root, 0.0029 else

constexpr int kEstimatedBits = 8;
constexpr double kEstimates = 1 << kEstimatedBits;     // of one power of two, and intervals that they stand for

inline double middle(double part, double intervals) { return (std::floor(part * intervals) + 0.5) / intervals; }

inline float estimate(double value, int exponent) {
    return static_cast<float>(std::ldexp(std::floor(value * kEstimates + 0.5), exponent - kEstimatedBits));
}

inline float reciprocal_estimate(float x) {
    if (x == 0 || !std::isfinite(x)) return 1.0f / x;
    int exponent;
    const double part = std::frexp(static_cast<double>(std::fabs(x)), &exponent);    // from 0.5 to 1
    return std::copysign(estimate(1 / middle(part, 2 * kEstimates), -exponent), x);
}

inline float reciprocal_root_estimate(float x) {
    if (!(x > 0) || !std::isfinite(x)) return 1.0f / std::sqrt(x);
    int exponent;
    double part = std::frexp(static_cast<double>(x), &exponent);
    if (exponent % 2 != 0) part /= 2, ++exponent;       // from 0.25 to 1, with a root of the power of two
    return estimate(1 / std::sqrt(middle(part, part < 0.5 ? 2 * kEstimates : kEstimates)), -exponent / 2);
}

}  // namespace asim
