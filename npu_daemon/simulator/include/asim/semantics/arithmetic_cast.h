// Sums, differences and products whose results are rounded to another type by the same instruction.
#pragma once
#include "asim/semantics/cast.h"
#include "asim/semantics/vector.h"

namespace asim {

// Pairs of dav-2201 (asc-devkit, basic API, tables of AddReluCast, SubReluCast and MulCast).
using ReluCasts = TypeList<CastPair<int8_t, half>, CastPair<half, float>, CastPair<int8_t, int16_t>>;
using ProductCasts = TypeList<CastPair<int8_t, half>, CastPair<uint8_t, half>>;

template <Op O, typename D, typename S>
constexpr bool casts_result = contains<CastPair<D, S>, std::conditional_t<O == Op::MulCast, ProductCasts, ReluCasts>>::value;

// Lanes of a repeat are those of the sources.
template <Op O, typename D, typename S>
ASIM_API void arithmetic_cast(Lanes dst, Lanes src0, Lanes src1, Shape shape);

}  // namespace asim
