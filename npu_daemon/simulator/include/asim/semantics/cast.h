// Type conversion of tensors.
#pragma once
#include "asim/numeric/rounding.h"
#include "asim/semantics/vector.h"

namespace asim {

template <typename D, typename S>
struct CastPair {};

// Conversions of dav-2201 by the rounding modes they take (asc-devkit, basic API, Cast).
using ExactCasts = TypeList<CastPair<half, int8_t>, CastPair<half, uint8_t>, CastPair<float, int16_t>,
                            CastPair<float, half>, CastPair<float, bfloat16_t>, CastPair<int16_t, int32_t>,
                            CastPair<int64_t, int32_t>, CastPair<int32_t, int64_t>>;
using RoundingCasts = TypeList<CastPair<int16_t, half>, CastPair<int32_t, half>, CastPair<int32_t, bfloat16_t>,
                               CastPair<int16_t, float>, CastPair<bfloat16_t, float>, CastPair<int32_t, float>,
                               CastPair<float, float>, CastPair<int64_t, float>, CastPair<float, int64_t>>;
using RoundingOrNoneCasts = TypeList<CastPair<half, int16_t>, CastPair<int8_t, half>, CastPair<uint8_t, half>,
                                     CastPair<float, int32_t>, CastPair<half, float>>;
using ScaledCasts = TypeList<CastPair<half, int32_t>>;   // multiplied by the dequantisation scale

template <typename D, typename S>
constexpr bool can_cast = contains<CastPair<D, S>, ExactCasts>::value || contains<CastPair<D, S>, RoundingCasts>::value ||
                          contains<CastPair<D, S>, RoundingOrNoneCasts>::value ||
                          contains<CastPair<D, S>, ScaledCasts>::value;

template <typename D, typename S>
constexpr bool takes_mode(RoundMode mode) {
    using Pair = CastPair<D, S>;
    if (mode == RoundMode::CAST_ODD) return std::is_same_v<Pair, CastPair<half, float>>;
    if (contains<Pair, ScaledCasts>::value || contains<Pair, RoundingOrNoneCasts>::value) return true;
    return (mode == RoundMode::CAST_NONE) == contains<Pair, ExactCasts>::value;
}

// dst = src converted to D
template <typename D, typename S>
ASIM_API void cast(Lanes dst, Lanes src, RoundMode mode, Shape shape);

// How int16_t becomes eight bits: scaled, shifted, rounded to the nearest even and saturated; the results of a data block of 16 lie in the
// first or the second half of a data block. `by_lane` takes the parameters of the 16 from a table in the unified buffer.
struct DequantShape {
    Flag is_signed = false;
    Flag by_lane = false;
    Flag second_half = false;
};
ASIM_API void cast_dequant(Lanes dst, Lanes src, DequantShape how, Shape shape);

// half to four bits, saturating, and back; two numbers a byte, the first in the low half (asc-devkit, basic API, Cast).
ASIM_API void cast_to_int4(uint8_t *dst, uint8_t *src, RoundMode mode, uint32_t count);
ASIM_API void cast_from_int4(uint8_t *dst, uint8_t *src, RoundMode mode, uint32_t count);
// Likewise by repeats of 128 lanes; a data block of packed numbers has 64.
ASIM_API void cast_int4_lanes(Lanes dst, Lanes src, RoundMode mode, Shape shape, bool packs);

}  // namespace asim
