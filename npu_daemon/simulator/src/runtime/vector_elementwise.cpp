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

template <Op O, typename... T>
void keep_fused(TypeList<T...> types) {
    keep_binary<O>(types);
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

}  // namespace

// Never called: taking the addresses is what makes the compiler emit the functions.
void instantiate_elementwise() {
#define ELEMENTWISE(name, form, cost, types, result) keep_##form<Op::name>(types());
#include "asim/trace/instructions.def"
}

template void shift_right_rounding<int16_t>(Lanes, Lanes, int16_t, Shape);
template void shift_right_rounding<int32_t>(Lanes, Lanes, int32_t, Shape);
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
