// Instantiates the element-wise instructions for every element type they support.
#include "asim/semantics/elementwise.h"

namespace asim {

namespace {

template <Op O, typename... T>
void keep_unary(TypeList<T...>) {
    static void (*const kept[])(Lanes, Lanes, Shape) __attribute__((used)) = {&unary<O, T>...};
    (void)kept;
}

template <Op O, typename... T>
void keep_binary(TypeList<T...>) {
    static void (*const kept[])(Lanes, Lanes, Lanes, Shape) __attribute__((used)) = {&binary<O, T>...};
    (void)kept;
}

template <Op O, typename T>
void keep_with_scalar_of() {
    static void (*const kept)(Lanes, Lanes, T, Shape) __attribute__((used)) = &with_scalar<O, T>;
    (void)kept;
}

template <Op O, typename... T>
void keep_with_scalar(TypeList<T...>) {
    (keep_with_scalar_of<O, T>(), ...);
}

template <Op... O>
void keep_all_unary() {
    (keep_unary<O>(supported_types<O>()), ...);
}

template <Op... O>
void keep_all_binary() {
    (keep_binary<O>(supported_types<O>()), ...);
}

template <Op... O>
void keep_all_with_scalar() {
    (keep_with_scalar<O>(supported_types<O>()), ...);
}

}  // namespace

// Never called: taking the addresses is what makes the compiler emit the functions.
void instantiate_elementwise() {
    keep_all_unary<Op::Abs, Op::Relu, Op::Not, Op::Exp, Op::Ln, Op::Sqrt, Op::Rsqrt, Op::Reciprocal>();
    keep_all_binary<Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Max, Op::Min, Op::And, Op::Or, Op::AddRelu, Op::SubRelu,
                    Op::FusedMulAdd, Op::FusedMulAddRelu>();
    keep_all_with_scalar<Op::Adds, Op::Muls, Op::Maxs, Op::Mins, Op::LeakyRelu, Op::ShiftLeft, Op::ShiftRight>();
}

template void axpy<half, half>(Lanes, Lanes, half, Shape);
template void axpy<float, float>(Lanes, Lanes, float, Shape);
template void axpy<float, half>(Lanes, Lanes, half, Shape);
template void mul_add_dst<half, half>(Lanes, Lanes, Lanes, Shape);
template void mul_add_dst<float, float>(Lanes, Lanes, Lanes, Shape);
template void mul_add_dst<float, half>(Lanes, Lanes, Lanes, Shape);
template void duplicate<half>(Lanes, half, Shape);
template void duplicate<bfloat16_t>(Lanes, bfloat16_t, Shape);
template void duplicate<float>(Lanes, float, Shape);
template void duplicate<int16_t>(Lanes, int16_t, Shape);
template void duplicate<uint16_t>(Lanes, uint16_t, Shape);
template void duplicate<int32_t>(Lanes, int32_t, Shape);
template void duplicate<uint32_t>(Lanes, uint32_t, Shape);

}  // namespace asim
