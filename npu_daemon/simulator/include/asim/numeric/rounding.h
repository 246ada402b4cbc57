// Conversions between element types under a rounding mode.
//
// Integers saturate and take 0 for NaN; floating-point targets overflow to infinity and keep NaN (the INF_NAN mode
// that the runtime of Atlas A2 starts kernels in).
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "asim/numeric/types.h"

namespace asim {

enum class RoundMode : uint8_t { CAST_NONE, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC, CAST_ODD };

// Nearest integral value of x under the mode; CAST_ROUND takes halves away from zero.
template <RoundMode M, typename F>
F round_to_integral(F x) {
    if constexpr (M == RoundMode::CAST_FLOOR) return std::floor(x);
    if constexpr (M == RoundMode::CAST_CEIL) return std::ceil(x);
    if constexpr (M == RoundMode::CAST_TRUNC) return std::trunc(x);
    if constexpr (M == RoundMode::CAST_NONE || M == RoundMode::CAST_RINT) return std::nearbyint(x);
    if constexpr (M == RoundMode::CAST_ROUND) {
        const F whole = std::trunc(x);
        return std::fabs(x - whole) >= F(0.5) ? whole + std::copysign(F(1), x) : whole;
    }
}

// An integral floating-point value as D, clamped to its range.
template <typename D, typename F>
D saturate_integral(F x) {
    using Limits = std::numeric_limits<D>;
    constexpr F beyond = F(uint64_t{1} << (Limits::digits - 1)) * F(2);
    constexpr F lowest = Limits::is_signed ? -beyond : F(0);
    if (x != x) return D(0);
    return x >= beyond ? Limits::max() : x < lowest ? Limits::min() : static_cast<D>(x);
}

// Clamps one integer to the range of another type.
template <typename D>
D saturate_integer(int64_t x) {
    using Limits = std::numeric_limits<D>;
    return x > static_cast<int64_t>(Limits::max())   ? Limits::max()
           : x < static_cast<int64_t>(Limits::min()) ? Limits::min()
                                                     : static_cast<D>(x);
}

template <typename F>
struct FloatBits;
template <>
struct FloatBits<half> {
    using Type = uint16_t;
    static constexpr int kMaxExponent = 16;     // the first power of two that overflows
};
template <>
struct FloatBits<bfloat16_t> {
    using Type = uint16_t;
    static constexpr int kMaxExponent = 128;
};
template <>
struct FloatBits<float> {
    using Type = uint32_t;
    static constexpr int kMaxExponent = 128;
};

template <typename F>
typename FloatBits<F>::Type float_bits(F value) {
    typename FloatBits<F>::Type bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

template <typename F>
F from_float_bits(typename FloatBits<F>::Type bits) {
    F value;
    std::memcpy(static_cast<void *>(&value), &bits, sizeof value);
    return value;
}

// Size of the value, with the overflow threshold in place of infinity.
template <typename D, typename Wide>
Wide finite_magnitude(D value) {
    const Wide magnitude = std::fabs(static_cast<Wide>(static_cast<float>(value)));
    return std::isinf(magnitude) ? std::ldexp(Wide(1), FloatBits<D>::kMaxExponent) : magnitude;
}

// x as the narrower floating-point type D. Wide holds every value of S and D exactly.
template <RoundMode M, typename D, typename S>
D round_to_float(S x) {
    using Wide = std::conditional_t<std::is_same_v<S, int64_t>, long double, double>;
    using Bits = typename FloatBits<D>::Type;
    const D nearest = static_cast<D>(x);
    if constexpr (M == RoundMode::CAST_NONE || M == RoundMode::CAST_RINT) return nearest;
    const Wide exact = static_cast<Wide>(x);
    const Wide size = std::fabs(exact);
    if (exact != exact || std::isinf(exact)) return nearest;
    constexpr Bits sign_bit = Bits(1) << (sizeof(Bits) * 8 - 1);
    const Bits sign = std::signbit(exact) ? sign_bit : Bits(0);
    Bits down = float_bits(nearest) & static_cast<Bits>(~sign_bit);
    const bool overflowed = std::isinf(static_cast<float>(nearest));
    if (overflowed || finite_magnitude<D, Wide>(from_float_bits<D>(down)) > size) --down;
    const Wide below = finite_magnitude<D, Wide>(from_float_bits<D>(down));
    const Wide above = finite_magnitude<D, Wide>(from_float_bits<D>(static_cast<Bits>(down + 1)));
    const bool inexact = below != size;
    bool up = false;
    if constexpr (M == RoundMode::CAST_FLOOR) up = inexact && sign != 0;
    if constexpr (M == RoundMode::CAST_CEIL) up = inexact && sign == 0;
    if constexpr (M == RoundMode::CAST_ROUND) up = inexact && size - below >= above - size;
    if constexpr (M == RoundMode::CAST_ODD) up = inexact && (down & 1) == 0;
    return from_float_bits<D>(static_cast<Bits>((down + (up ? 1 : 0)) | sign));
}

// The conversion that a Cast instruction makes of one element.
template <RoundMode M, typename D, typename S>
D convert(S x) {
    if constexpr (std::is_same_v<D, S>) {
        return round_to_integral<M>(x);
    } else if constexpr (is_floating<S> && is_floating<D>) {
        if constexpr (sizeof(D) > sizeof(S)) return static_cast<D>(x);
        else return round_to_float<M, D>(x);
    } else if constexpr (is_floating<S>) {
        return saturate_integral<D>(round_to_integral<M>(static_cast<float>(x)));
    } else if constexpr (is_floating<D>) {
        return round_to_float<M, D>(x);
    } else {
        return saturate_integer<D>(static_cast<int64_t>(x));
    }
}

}  // namespace asim
