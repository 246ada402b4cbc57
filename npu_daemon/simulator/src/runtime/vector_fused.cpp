// Arithmetic with a conversion of the result.
#include "asim/semantics/arithmetic_cast.h"

#include "asim/semantics/lanes.h"

namespace asim {

namespace {

template <Op O, typename T>
T result_of(T a, T b) {
    if constexpr (O == Op::MulCast) return static_cast<T>(a * b);
    const T value = static_cast<T>(O == Op::AddReluCast ? a + b : a - b);
    return value < T(0) ? T(0) : value;
}

// Sums of 16-bit integers saturate.
template <Op O>
int16_t result_of(int16_t a, int16_t b) {
    const int32_t value = O == Op::AddReluCast ? int32_t{a} + b : int32_t{a} - b;
    return static_cast<int16_t>(std::clamp<int32_t>(value, 0, INT16_MAX));
}

template <Op O, typename D, typename S>
D converted(S a, S b) {
    if constexpr (std::is_same_v<S, int16_t>) return static_cast<D>(std::min<int32_t>(result_of<O>(a, b), INT8_MAX));
    else return convert<RoundMode::CAST_RINT, D>(result_of<O, S>(a, b));
}

}  // namespace

template <Op O, typename D, typename S>
void arithmetic_cast(Lanes dst, Lanes src0, Lanes src1, Shape shape) {
    const Operand out = vector_operand<D>(O, "dst", dst, shape, sizeof(S));
    const Operand first = vector_operand<S>(O, "src0", src0, shape, sizeof(S));
    const Operand second = vector_operand<S>(O, "src1", src1, shape, sizeof(S));
    for_each_lane<D>(shape, [](D &d, const S &a, const S &b) { d = converted<O, D, S>(a, b); }, dst, source<S>(src0), source<S>(src1));
    emit_vector(O, sizeof(S), repeats_of(shape, sizeof(S)), {out, first, second});
}

template void arithmetic_cast<Op::AddReluCast, int8_t, half>(Lanes, Lanes, Lanes, Shape);
template void arithmetic_cast<Op::AddReluCast, half, float>(Lanes, Lanes, Lanes, Shape);
template void arithmetic_cast<Op::AddReluCast, int8_t, int16_t>(Lanes, Lanes, Lanes, Shape);
template void arithmetic_cast<Op::SubReluCast, int8_t, half>(Lanes, Lanes, Lanes, Shape);
template void arithmetic_cast<Op::SubReluCast, half, float>(Lanes, Lanes, Lanes, Shape);
template void arithmetic_cast<Op::SubReluCast, int8_t, int16_t>(Lanes, Lanes, Lanes, Shape);
template void arithmetic_cast<Op::MulCast, int8_t, half>(Lanes, Lanes, Lanes, Shape);
template void arithmetic_cast<Op::MulCast, uint8_t, half>(Lanes, Lanes, Lanes, Shape);

}  // namespace asim
