// What each element-wise instruction computes, one short function each.
#pragma once
#include <cmath>

#include "asim/numeric/estimate.h"
#include "asim/numeric/transcendental.h"
#include "asim/semantics/lanes.h"

namespace asim {

// Arithmetic is done in the type itself (fp16 rounds after each operation, as the vector unit does);
// integers wrap in two's complement.
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

template <Op O>
constexpr bool kComputed = false;  // asked for by the instructions that the functions below leave out

template <Op O, typename T>
T apply_unary(T x) {
    if constexpr (O == Op::Abs) return x < T(0) ? -x : x == T(0) ? T(0) : x;
    else if constexpr (O == Op::Relu) return x > T(0) || x != x ? x : T(0);
    else if constexpr (O == Op::Not) return static_cast<T>(~x);
    else if constexpr (O == Op::Exp) return with_one_nan(static_cast<T>(exponential(static_cast<float>(x))));
    else if constexpr (O == Op::Ln) return with_one_nan(static_cast<T>(logarithm(static_cast<float>(x))));
    else if constexpr (O == Op::Sqrt) return with_one_nan(static_cast<T>(std::sqrt(static_cast<float>(x))));
    else static_assert(kComputed<O>, "apply_unary (asim/semantics/elementwise.h) does not say what this instruction computes");
}

template <Op O, typename T>
T apply_binary(T a, T b) {
    if constexpr (O == Op::Add || O == Op::Adds) {
        if constexpr (is_floating<T>) return with_one_nan<T>(a + b);
        else return wrap<T>(static_cast<int64_t>(a) + b);
    } else if constexpr (O == Op::Sub) {
        if constexpr (is_floating<T>) return with_one_nan<T>(a - b);
        else return wrap<T>(static_cast<int64_t>(a) - b);
    } else if constexpr (O == Op::Mul || O == Op::Muls) {
        if constexpr (is_floating<T>) return with_one_nan<T>(a * b);
        else return wrap<T>(static_cast<int64_t>(a) * b);
    } else if constexpr (O == Op::Div) return with_one_nan<T>(a / b);
    else if constexpr (O == Op::Max || O == Op::Maxs) return a > b || a != a ? a : b;
    else if constexpr (O == Op::Min || O == Op::Mins) return a < b || a != a ? a : b;
    else if constexpr (O == Op::And) return static_cast<T>(a & b);
    else if constexpr (O == Op::Or) return static_cast<T>(a | b);
    else if constexpr (O == Op::ShiftLeft) return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << b);
    else if constexpr (O == Op::ShiftRight) return static_cast<T>(a >> b);
    else if constexpr (O == Op::LeakyRelu) return a >= T(0) ? a : with_one_nan(static_cast<T>(a * b));
    else if constexpr (O == Op::AddRelu) return apply_binary<Op::Max, T>(apply_binary<Op::Add, T>(a, b), T(0));
    else if constexpr (O == Op::SubRelu) return apply_binary<Op::Max, T>(apply_binary<Op::Sub, T>(a, b), T(0));
    else static_assert(kComputed<O>, "apply_binary (asim/semantics/elementwise.h) does not say what this instruction computes");
}

template <Op O>
struct Unary {
    template <typename T>
    void operator()(T &d, const T &x) const {
        d = apply_unary<O, T>(x);
    }
};

constexpr bool is_estimate(Op op) { return op == Op::Rsqrt || op == Op::Reciprocal; }

template <Op O>
struct Estimate {
    template <typename T>
    void operator()(T &d, const T &x) const {
        const auto wide = static_cast<float>(x);
        d = with_one_nan(static_cast<T>(O == Op::Reciprocal ? reciprocal_estimate(wide) : reciprocal_root_estimate(wide)));
    }
};

template <Op O>
struct Binary {
    template <typename T>
    void operator()(T &d, const T &a, const T &b) const {
        d = apply_binary<O, T>(a, b);
    }
};

template <Op O, typename U>
struct WithScalar {
    U scalar;
    template <typename T>
    void operator()(T &d, const T &x) const {
        d = apply_binary<O, T>(x, static_cast<T>(scalar));
    }
};

// FusedMulAdd: src0 * dst + src1, rounded once per operation.
template <Op O, typename T>
T apply_fused(T dst, T a, T b) {
    const T sum = with_one_nan(static_cast<T>(static_cast<T>(a * dst) + b));
    return O == Op::FusedMulAddRelu && !(sum > T(0)) ? T(0) : sum;
}

template <Op O, typename T>
void unary(Lanes dst, Lanes src, Shape shape) {
    const Operand out = vector_operand<T>(O, "dst", dst, shape, sizeof(T));
    const Operand in = vector_operand<T>(O, "src", src, shape, sizeof(T));
    if constexpr (is_estimate(O)) {
        for_each_lane<T>(shape, RoundedOnce<Estimate<O>>{}, dst, source<T>(src));
        estimated(info(O).name, kEstimatedWithin);
    } else {
        for_each_lane<T>(shape, RoundedOnce<Unary<O>>{}, dst, source<T>(src));
    }
    emit_vector(O, sizeof(T), repeats_of(shape, sizeof(T)), {out, in});
}

template <Op O, typename T>
void binary(Lanes dst, Lanes src0, Lanes src1, Shape shape) {
    const Operand out = vector_operand<T>(O, "dst", dst, shape, sizeof(T));
    const Operand first = vector_operand<T>(O, "src0", src0, shape, sizeof(T));
    const Operand second = vector_operand<T>(O, "src1", src1, shape, sizeof(T));
    if constexpr (O == Op::FusedMulAdd || O == Op::FusedMulAddRelu) {
        for_each_lane<T>(shape, [](T &d, const T &a, const T &b) { d = apply_fused<O, T>(d, a, b); }, dst,
                         source<T>(src0), source<T>(src1));
    } else {
        for_each_lane<T>(shape, RoundedOnce<Binary<O>>{}, dst, source<T>(src0), source<T>(src1));
    }
    emit_vector(O, sizeof(T), repeats_of(shape, sizeof(T)), {out, first, second});
}

template <Op O, typename T>
void with_scalar(Lanes dst, Lanes src, T scalar, Shape shape) {
    const Operand out = vector_operand<T>(O, "dst", dst, shape, sizeof(T));
    const Operand in = vector_operand<T>(O, "src", src, shape, sizeof(T));
    for_each_lane<T>(shape, RoundedOnce<WithScalar<O, T>>{{scalar}}, dst, source<T>(src));
    emit_vector(O, sizeof(T), repeats_of(shape, sizeof(T)), {out, in});
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
