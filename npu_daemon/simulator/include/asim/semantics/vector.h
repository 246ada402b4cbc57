// Vector instructions as pure functions on strided lanes; declared here, defined once in the runtime.
#pragma once
#include <cstdint>

#include "asim/machine/export.h"
#include "asim/machine/units.h"
#include "asim/numeric/types.h"
#include "asim/trace/record.h"

namespace asim {

// One operand: start address, and the distance between data blocks and between repeats in 32 B units.
struct Lanes {
    uint8_t *base = nullptr;
    uint32_t block_stride = 1;
    uint32_t repeat_stride = 8;
};

// Which lanes take part: the first `count` elements, or `mask` in each of `repeats` repeats. Counted elements are
// contiguous, except in counter mode, where the strides of the operands say where each repeat's blocks are.
struct Shape {
    Flag counted = true;
    Flag strided = false;
    uint32_t count = 0;
    uint32_t repeats = 0;
    uint64_t mask[2] = {0, 0};

    static Shape first(int64_t count) {
        Shape shape;
        shape.count = count > 0 ? static_cast<uint32_t>(count) : 0;
        return shape;
    }
    static Shape counter(int64_t count) {
        Shape shape = first(count);
        shape.strided = true;
        return shape;
    }
    static Shape masked(uint64_t low, uint64_t high, uint32_t repeats) {
        Shape shape;
        shape.counted = false;
        shape.repeats = repeats;
        shape.mask[0] = low;
        shape.mask[1] = high;
        return shape;
    }
    // The first `lanes` lanes of each repeat.
    static Shape leading(uint64_t lanes, uint32_t repeats) {
        const uint64_t low = lanes >= 64 ? ~0ull : (1ull << lanes) - 1;
        const uint64_t high = lanes >= 128 ? ~0ull : lanes > 64 ? (1ull << (lanes - 64)) - 1 : 0;
        return masked(low, high, repeats);
    }
};

// Element types of each instruction on dav-2201 (asc-devkit docs/zh/api/SIMD-API).
using FloatTypes = TypeList<half, float>;
using ArithmeticTypes = TypeList<half, float, int16_t, int32_t>;
using BitTypes = TypeList<uint16_t, int16_t>;
using ShiftTypes = TypeList<uint16_t, int16_t, uint32_t, int32_t>;

using ReluTypes = TypeList<half, float, int32_t>;
using FusedReluTypes = TypeList<half, float, int16_t>;

template <Op O>
struct SupportedTypes;

#define ELEMENTWISE(name, form, cost, types, result) \
    template <>                                      \
    struct SupportedTypes<Op::name> {                \
        using List = types;                          \
    };
#include "asim/trace/instructions.def"

template <Op O, typename T>
constexpr bool supports = contains<T, typename SupportedTypes<O>::List>::value;

// dst = op(src); dst = op(src0, src1); dst = op(src, scalar); dst = op(src0, src1, dst), which is called like a binary one.
enum class Form { unary, binary, with_scalar, fused, other };

constexpr Form form_of(Op op) {
    switch (op) {
#define ELEMENTWISE(name, form, cost, types, result) \
    case Op::name: return Form::form;
#include "asim/trace/instructions.def"
        default: return Form::other;
    }
}

// dst = op(src)
template <Op O, typename T>
ASIM_API void unary(Lanes dst, Lanes src, Shape shape);

// dst = op(src0, src1); the fused forms also read dst.
template <Op O, typename T>
ASIM_API void binary(Lanes dst, Lanes src0, Lanes src1, Shape shape);

// dst = op(src, scalar)
template <Op O, typename T>
ASIM_API void with_scalar(Lanes dst, Lanes src, T scalar, Shape shape);

// dst = src >> scalar, plus the last bit that is shifted out
template <typename T>
ASIM_API void shift_right_rounding(Lanes dst, Lanes src, T scalar, Shape shape);

// dst = src * scalar + dst, widening from S to D.
template <typename D, typename S>
ASIM_API void axpy(Lanes dst, Lanes src, S scalar, Shape shape);

// dst = src0 * src1 + dst, widening from S to D.
template <typename D, typename S>
ASIM_API void mul_add_dst(Lanes dst, Lanes src0, Lanes src1, Shape shape);

// dst = scalar
template <typename T>
ASIM_API void duplicate(Lanes dst, T scalar, Shape shape);

}  // namespace asim
