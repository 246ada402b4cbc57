// Conversions to and from half precision that compilers call where the processor has no instruction for them.
#include <stdint.h>
#include <string.h>

enum { kHalfBits = 10, kHalfBias = 15, kHalfMaxExponent = 31, kDoubleBits = 52, kDoubleBias = 1023, kDoubleMaxExponent = 2047 };

static _Float16 half_of_bits(uint16_t bits) {
    _Float16 value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// `mantissa` / 2^shift, rounded to nearest, ties to even.
static uint64_t rounded_shift(uint64_t mantissa, int shift) {
    const uint64_t half = 1ull << (shift - 1), rest = mantissa & ((1ull << shift) - 1);
    const uint64_t quotient = mantissa >> shift;
    return quotient + (rest > half || (rest == half && (quotient & 1) != 0));
}

_Float16 __truncdfhf2(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    const int exponent = (int)(bits >> kDoubleBits & kDoubleMaxExponent);
    const uint64_t fraction = bits & ((1ull << kDoubleBits) - 1);
    const uint16_t infinity = (uint16_t)(kHalfMaxExponent << kHalfBits);
    if (exponent == kDoubleMaxExponent) {
        const uint16_t payload = fraction == 0 ? 0 : (uint16_t)(1 << (kHalfBits - 1) | fraction >> (kDoubleBits - kHalfBits));
        return half_of_bits((uint16_t)(sign | infinity | payload));
    }
    const int target = exponent - kDoubleBias + kHalfBias;  // biased, as if the result were normal
    if (target >= kHalfMaxExponent) return half_of_bits(sign | infinity);
    if (target < -kHalfBits) return half_of_bits(sign);  // below half of the smallest number
    const uint64_t mantissa = fraction | 1ull << kDoubleBits;
    const int shift = kDoubleBits - kHalfBits;
    if (target <= 0) return half_of_bits((uint16_t)(sign | rounded_shift(mantissa, shift + 1 - target)));
    // A carry out of the mantissa raises the exponent, up to infinity.
    return half_of_bits((uint16_t)(sign | (((uint64_t)(target - 1) << kHalfBits) + rounded_shift(mantissa, shift))));
}

// Each float is a double: one rounding.
_Float16 __truncsfhf2(float value) { return __truncdfhf2(value); }

float __extendhfsf2(_Float16 value) {
    uint16_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    const uint32_t exponent = bits >> kHalfBits & kHalfMaxExponent, fraction = bits & 0x3ff;
    if (exponent == 0) {
        const float magnitude = (float)fraction * 0x1p-24f;
        return sign != 0 ? -magnitude : magnitude;
    }
    const uint32_t quiet = exponent == kHalfMaxExponent && fraction != 0 ? 1u << 22 : 0;
    const uint32_t wide = exponent == kHalfMaxExponent ? 255 : exponent - kHalfBias + 127;
    const uint32_t word = sign | wide << 23 | fraction << 13 | quiet;
    float result;
    memcpy(&result, &word, sizeof result);
    return result;
}
