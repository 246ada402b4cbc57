// Exponential and natural logarithm of floats, the same on every host (a C library chooses by processor) and without
// branches, so that compilers turn loops over them into vector code. Computed in double, rounded once.
#pragma once
#include <cstdint>
#include <cstring>

namespace asim {

namespace binary64 {

constexpr int kFractionBits = 52;
constexpr uint64_t kOne = 0x3ff0000000000000ull;    // bits of 1.0
constexpr double kLn2 = 0.6931471805599453;
// 2^52 + 2^51: a double of this size has no fraction, and its lowest bits are the whole number that was added.
constexpr double kWhole = 6755399441055744.0;

inline uint64_t bits_of(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline double from_bits(uint64_t bits) {
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

}  // namespace binary64

// exp(x) = 2^n exp(r) with |r| <= ln(2) / 2; the Taylor series up to r^8 is off by less than 2.1e-10 of the value.
inline float exponential(float x) {
    using namespace binary64;
    constexpr double kLowest = -110.0, kHighest = 100.0;    // beyond them the result is 0 or infinite
    double value = x;
    value = value < kLowest ? kLowest : value;
    value = value > kHighest ? kHighest : value;
    const double shifted = value * (1.0 / kLn2) + kWhole;
    const double r = value - (shifted - kWhole) * kLn2;
    const double r2 = r * r, r4 = r2 * r2;      // in pairs, which processors compute side by side
    const double first = (1.0 + r) + r2 * (1.0 / 2 + r * (1.0 / 6));
    const double second = (1.0 / 24 + r * (1.0 / 120)) + r2 * (1.0 / 720 + r * (1.0 / 5040));
    const double series = first + r4 * (second + r4 * (1.0 / 40320));
    return static_cast<float>(series * from_bits((bits_of(shifted) << kFractionBits) + kOne));
}

// ln(x) = n ln(2) + 2 artanh(s) with x = 2^n m, s = (m - 1) / (m + 1) and sqrt(1/2) <= m < sqrt(2); the series up to
// s^11 is off by less than 6e-11 of the second term.
inline float logarithm(float x) {
    using namespace binary64;
    constexpr uint64_t kRootOfHalf = 0x3fe6a09e667f3bcdull, kFraction = (1ull << kFractionBits) - 1;
    constexpr uint64_t kWholeBits = 0x4330000000000000ull;  // of 2^52
    constexpr double kTwoTo52 = 4503599627370496.0;
    const double value = x;
    // counted from sqrt(1/2), the exponent field changes where m does
    const uint64_t offset = bits_of(value) - kRootOfHalf + kOne;
    const double n = from_bits((offset >> kFractionBits) | kWholeBits) - (kTwoTo52 + 1023.0);
    const double m = from_bits((offset & kFraction) + kRootOfHalf);
    const double s = (m - 1.0) / (m + 1.0), z = s * s;
    double series = 1.0 / 11;
    series = series * z + 1.0 / 9;
    series = series * z + 1.0 / 7;
    series = series * z + 1.0 / 5;
    series = series * z + 1.0 / 3;
    const double artanh = s + s * (z * series);
    double result = n * kLn2 + 2.0 * artanh;
    result = value == 0.0 ? -__builtin_inf() : result;
    result = value == __builtin_inf() ? value : result;
    return static_cast<float>(value >= 0.0 ? result : __builtin_nan(""));
}

}  // namespace asim
