// How element-wise instructions compute, and the functions that instructions.def has for it.
#pragma once
#include <cmath>

#include "asim/check/operand_overlap.h"
#include "asim/numeric/estimate.h"
#include "asim/numeric/transcendental.h"
#include "asim/semantics/lanes.h"

namespace asim {

// The functions that instructions.def writes results with. Arithmetic is done in the type itself (fp16 rounds after each operation, as
// the vector unit does); integers wrap in two's complement.
template <typename T>
T wrap(int64_t value) {
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(value));
}

// What an instruction that computes with floats gives for a NaN, whatever the NaN of its operands: a 910B2 gave 0x7fffffff for every
// NaN that Muls took (generated kernels, docs/fidelity.md); the others are assumed to. Nothing published says what it is for half.
template <typename T>
T with_one_nan(T value) {
    if constexpr (std::is_same_v<T, float>) return value == value ? value : __builtin_bit_cast(float, 0x7fffffffu);
    else return value;
}

template <typename T>
float wide(T x) {
    return static_cast<float>(x);
}

template <typename T, typename U>
T rounded(U x) {
    return with_one_nan(static_cast<T>(x));
}

template <typename T>
T sum(T a, T b) {
    if constexpr (is_floating<T>) return with_one_nan<T>(a + b);
    else return wrap<T>(static_cast<int64_t>(a) + b);
}

template <typename T>
T difference(T a, T b) {
    if constexpr (is_floating<T>) return with_one_nan<T>(a - b);
    else return wrap<T>(static_cast<int64_t>(a) - b);
}

template <typename T>
T product(T a, T b) {
    if constexpr (is_floating<T>) return with_one_nan<T>(a * b);
    else return wrap<T>(static_cast<int64_t>(a) * b);
}

template <typename T>
T shifted_left(T a, T bits) {
    return static_cast<T>(static_cast<uint64_t>(static_cast<std::make_unsigned_t<T>>(a)) << bits);
}

// Of signed elements arithmetic; all bits may be shifted out.
template <typename T>
T shifted_right(T a, T bits) {
    return static_cast<T>(static_cast<int64_t>(a) >> bits);
}

template <Op O, typename T>
void check_shift(T bits) {
    constexpr bool left = O == Op::ShiftLeft, narrow = sizeof(T) == sizeof(uint16_t);
    check_range(left ? narrow ? ParameterRange::ShiftLeftOf16 : ParameterRange::ShiftLeftOf32
                     : narrow ? ParameterRange::ShiftRightOf16 : ParameterRange::ShiftRightOf32,
                static_cast<int64_t>(bits));
}

// The larger and the smaller of two; `a` if it is NaN.
template <typename T>
T larger(T a, T b) {
    return a > b || a != a ? a : b;
}

template <typename T>
T smaller(T a, T b) {
    return a < b || a != a ? a : b;
}

// Zero for what is negative, and for NaN.
template <typename T>
T positive_part(T a) {
    return a > T(0) ? a : T(0);
}

template <typename T>
T magnitude(T a) {
    return a < T(0) ? -a : a == T(0) ? T(0) : a;
}

// One lane of an instruction: f(destination, source), or f(destination, source, second source or scalar).
template <Op O>
struct Lane;

#define ASIM_LANE_unary (T & d, T a)
#define ASIM_LANE_binary (T & d, T a, T b)
#define ASIM_LANE_with_scalar (T & d, T a, T b)
#define ASIM_LANE_fused (T & d, T a, T b)
#define ELEMENTWISE(name, form, cost, types, result)  \
    template <>                                       \
    struct Lane<Op::name> {                           \
        template <typename T>                         \
        void operator() ASIM_LANE_##form const {      \
            d = static_cast<T>(result);               \
        }                                             \
    };
#include "asim/trace/instructions.def"
#undef ASIM_LANE_unary
#undef ASIM_LANE_binary
#undef ASIM_LANE_with_scalar
#undef ASIM_LANE_fused

constexpr bool is_estimate(Op op) { return op == Op::Rsqrt || op == Op::Reciprocal; }

template <Op O, typename U>
struct WithScalar {
    U scalar;
    template <typename T>
    void operator()(T &d, T x) const {
        Lane<O>{}(d, x, static_cast<T>(scalar));
    }
};

template <Op O, typename T>
void unary(Lanes dst, Lanes src, Shape shape) {
    const Operand out = vector_operand<T>(O, "dst", dst, shape, sizeof(T));
    const Operand in = vector_operand<T>(O, "src", src, shape, sizeof(T));
    for_each_lane<T>(shape, RoundedOnce<Lane<O>>{}, dst, source<T>(src));
    if constexpr (is_estimate(O)) estimated(info(O).name, kEstimatedWithin);
    emit_vector(O, sizeof(T), repeats_of(shape, sizeof(T)), {out, in});
}

template <Op O, typename T>
void binary(Lanes dst, Lanes src0, Lanes src1, Shape shape) {
    const Operand out = vector_operand<T>(O, "dst", dst, shape, sizeof(T));
    const Operand first = vector_operand<T>(O, "src0", src0, shape, sizeof(T));
    const Operand second = vector_operand<T>(O, "src1", src1, shape, sizeof(T));
    if constexpr (form_of(O) == Form::fused) {
        for_each_lane<T>(shape, Lane<O>{}, dst, source<T>(src0), source<T>(src1));  // rounded once per operation
    } else {
        for_each_lane<T>(shape, RoundedOnce<Lane<O>>{}, dst, source<T>(src0), source<T>(src1));
    }
    emit_vector(O, sizeof(T), repeats_of(shape, sizeof(T)), {out, first, second});
}

template <Op O, typename T>
void with_scalar(Lanes dst, Lanes src, T scalar, Shape shape) {
    if constexpr (O == Op::ShiftLeft || O == Op::ShiftRight) check_shift<O>(scalar);
    const Operand out = vector_operand<T>(O, "dst", dst, shape, sizeof(T));
    const Operand in = vector_operand<T>(O, "src", src, shape, sizeof(T));
    for_each_lane<T>(shape, RoundedOnce<WithScalar<O, T>>{{scalar}}, dst, source<T>(src));
    emit_vector(O, sizeof(T), repeats_of(shape, sizeof(T)), {out, in});
}

template <typename T>
void shift_right_rounding(Lanes dst, Lanes src, T scalar, Shape shape) {
    check_shift<Op::ShiftRight>(scalar);
    const Operand out = vector_operand<T>(Op::ShiftRight, "dst", dst, shape, sizeof(T));
    const Operand in = vector_operand<T>(Op::ShiftRight, "src", src, shape, sizeof(T));
    const auto bits = static_cast<int64_t>(scalar);
    for_each_lane<T>(shape, [bits](T &d, const T &x) { d = static_cast<T>((int64_t{x} >> bits) + (bits == 0 ? 0 : int64_t{x} >> (bits - 1) & 1)); },
                     dst, source<T>(src));
    emit_vector(Op::ShiftRight, sizeof(T), repeats_of(shape, sizeof(T)), {out, in});
}

template <typename D, typename S>
void axpy(Lanes dst, Lanes src, S scalar, Shape shape) {
    const Operand out = vector_operand<D>(Op::Axpy, "dst", dst, shape, sizeof(D));
    const Operand in = vector_operand<S>(Op::Axpy, "src", src, shape, sizeof(D));
    const D factor = static_cast<D>(scalar);
    for_each_lane<D>(shape, [factor](D &d, const S &x) { d = with_one_nan<D>(static_cast<D>(static_cast<D>(x) * factor) + d); }, dst,
                     source<S>(src));
    emit_vector(Op::Axpy, sizeof(D), repeats_of(shape, sizeof(D)), {out, in});
}

template <typename D, typename S>
void mul_add_dst(Lanes dst, Lanes src0, Lanes src1, Shape shape) {
    const Operand out = vector_operand<D>(Op::MulAddDst, "dst", dst, shape, sizeof(D));
    const Operand first = vector_operand<S>(Op::MulAddDst, "src0", src0, shape, sizeof(D));
    const Operand second = vector_operand<S>(Op::MulAddDst, "src1", src1, shape, sizeof(D));
    for_each_lane<D>(
        shape, [](D &d, const S &a, const S &b) { d = with_one_nan<D>(static_cast<D>(static_cast<D>(a) * static_cast<D>(b)) + d); },
        dst, source<S>(src0), source<S>(src1));
    emit_vector(Op::MulAddDst, sizeof(D), repeats_of(shape, sizeof(D)), {out, first, second});
}

template <typename T>
void duplicate(Lanes dst, T scalar, Shape shape) {
    const Operand out = vector_operand<T>(Op::Duplicate, "dst", dst, shape, sizeof(T));
    for_each_lane<T>(shape, [scalar](T &d) { d = scalar; }, dst);
    emit_vector(Op::Duplicate, sizeof(T), repeats_of(shape, sizeof(T)), {out});
}

}  // namespace asim
