// Comparisons to bit masks, and selection by bit masks.
#include "asim/semantics/compare.h"

#include "asim/machine/sync.h"
#include "asim/semantics/indexed_lanes.h"

namespace asim {

namespace {

constexpr uint32_t kMaxRepeats = 252;           // of one instruction that the count form issues
constexpr uint32_t kRegisterBytes = 16;         // CMPMASK
constexpr uint32_t kRegisterAlignment = 16;

// Calls use(relation) with the relation of two elements that `mode` stands for.
template <typename F>
void with_relation(CompareMode mode, F use) {
    switch (mode) {
        case CompareMode::LT: return use([](auto a, auto b) { return a < b; });
        case CompareMode::GT: return use([](auto a, auto b) { return a > b; });
        case CompareMode::EQ: return use([](auto a, auto b) { return a == b; });
        case CompareMode::LE: return use([](auto a, auto b) { return a <= b; });
        case CompareMode::GE: return use([](auto a, auto b) { return a >= b; });
        case CompareMode::NE: return use([](auto a, auto b) { return a != b; });
    }
}

constexpr uint32_t kEight = 8;

// Bits of eight elements, which lie side by side.
template <typename Relation, typename T>
uint8_t eight_bits(Relation relation, const T *a, const T *b) {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < kEight; ++i) bits |= uint32_t{relation(a[i], b[i])} << i;
    return static_cast<uint8_t>(bits);
}

bool bit(const uint8_t *bits, uint32_t index) { return (bits[index / 8] >> (index % 8)) & 1u; }

void set_bit(uint8_t *bits, uint32_t index, bool value) {
    const uint8_t mask = static_cast<uint8_t>(1u << (index % 8));
    bits[index / 8] = static_cast<uint8_t>(value ? bits[index / 8] | mask : bits[index / 8] & ~mask);
}

template <typename T>
void check_mode(Op op, CompareMode mode) {
    if (mode > CompareMode::NE) fault(FaultKind::RuntimeFault, info(op).name, "there is no comparison of number %u", static_cast<unsigned>(mode));
    if (std::is_same_v<T, int32_t> && mode != CompareMode::EQ) {
        fault(FaultKind::RuntimeFault, info(op).name, "int32_t supports only CMPMODE::EQ on Atlas A2: cast to float first");
    }
}

Lanes skip_repeats(const Lanes &lanes, uint32_t repeats) {
    return {lanes.base + uint64_t{repeats} * lanes.repeat_stride * kUbBlockBytes, lanes.block_stride, lanes.repeat_stride};
}

template <typename T>
void compare_once(uint8_t *dst, const Lanes &src0, const Lanes &src1, CompareMode mode, uint32_t repeats) {
    constexpr uint32_t lanes = lanes_per_repeat(sizeof(T));
    const Shape shape = Shape::leading(lanes, repeats);
    const Operand out = range_operand(Op::Compare, "dst", dst, uint64_t{repeats} * lanes / 8);
    const Operand first = vector_operand<T>(Op::Compare, "src0", src0, shape, sizeof(T));
    const Operand second = vector_operand<T>(Op::Compare, "src1", src1, shape, sizeof(T));
    with_relation(mode, [&](auto relation) {
        for (uint32_t lane = 0; lane < repeats * lanes; lane += kEight) {
            dst[lane / kEight] = eight_bits(relation, lane_pointer<T>(src0, lane / lanes, lane % lanes),
                                            lane_pointer<T>(src1, lane / lanes, lane % lanes));
        }
    });
    emit_vector(Op::Compare, sizeof(T), repeats, {out, first, second});
}

template <typename T>
void compare_scalar_once(uint8_t *dst, const Lanes &src0, T scalar, CompareMode mode, uint32_t repeats) {
    constexpr uint32_t lanes = lanes_per_repeat(sizeof(T));
    const Shape shape = Shape::leading(lanes, repeats);
    const Operand out = range_operand(Op::CompareScalar, "dst", dst, uint64_t{repeats} * lanes / 8);
    const Operand in = vector_operand<T>(Op::CompareScalar, "src0", src0, shape, sizeof(T));
    T scalars[kEight];
    std::fill_n(scalars, kEight, scalar);
    with_relation(mode, [&](auto relation) {
        for (uint32_t lane = 0; lane < repeats * lanes; lane += kEight) {
            dst[lane / kEight] = eight_bits(relation, lane_pointer<T>(src0, lane / lanes, lane % lanes), scalars);
        }
    });
    emit_vector(Op::CompareScalar, sizeof(T), repeats, {out, in});
}

// Bits of one repeat.
const uint8_t *bits_of(const Selector &selector, uint32_t repeat, uint32_t lanes) {
    return selector.advances ? selector.bits + repeat * lanes / 8
                             : reinterpret_cast<const uint8_t *>(block().compare_mask);
}

Operand selector_operand(const Selector &selector, uint32_t repeats, uint32_t lanes) {
    if (!selector.advances) return kNoOperand;
    return range_operand(Op::Select, "selMask", selector.bits, uint64_t{repeats} * lanes / 8);
}

// What the library does before it selects: the bits themselves, or their address or the scalar, which take the way
// through a block of the unified buffer that nothing else uses, go to the CMPMASK register.
void set_up_register(const Selector &selector) {
    if (selector.bits == nullptr) return;
    if (selector.advances) {
        emit_vector(Op::Duplicate, sizeof(uint32_t), 1, {kNoOperand});
        pipe_barrier(Pipe::V);
        emit_vector(Op::SetCmpMask, sizeof(uint16_t), 1, {kNoOperand});
    } else {
        load_compare_mask(selector.bits);
    }
    pipe_barrier(Pipe::V);
}

// dst = bit ? src0 : src1; the elements of src1 are where `other` says.
template <typename T, typename Other>
void select_lanes(const Lanes &dst, const Selector &selector, const Lanes &src0, Other other, const Shape &shape) {
    constexpr uint32_t lanes = lanes_per_repeat(sizeof(T));
    const auto whole = [&](uint32_t repeat, uint32_t lane) {
        const uint8_t bits = bits_of(selector, repeat, lanes)[lane / kEight];
        const T *first = lane_pointer<T>(src0, repeat, lane), *second = other(repeat, lane);
        T chosen[kEight];
        for (uint32_t i = 0; i < kEight; ++i) chosen[i] = bits >> i & 1u ? first[i] : second[i];
        std::memcpy(lane_pointer<T>(dst, repeat, lane), chosen, sizeof chosen);
    };
    const auto single = [&](uint32_t repeat, uint32_t lane) {
        const bool set = bit(bits_of(selector, repeat, lanes), lane);
        *lane_pointer<T>(dst, repeat, lane) = set ? *lane_pointer<T>(src0, repeat, lane) : *other(repeat, lane);
    };
    for_each_eight(shape, lanes, whole, single);
}

template <typename T>
void select_bits_or_scalar(const Lanes &dst, const Selector &selector, const Lanes &src0, T scalar, const Shape &shape) {
    constexpr uint32_t lanes = lanes_per_repeat(sizeof(T));
    const uint32_t repeats = repeats_of(shape, sizeof(T));
    const Operand out = vector_operand<T>(Op::Select, "dst", dst, shape, sizeof(T));
    const Operand in = vector_operand<T>(Op::Select, "src0", src0, shape, sizeof(T));
    const Operand bits = selector_operand(selector, repeats, lanes);
    T scalars[kEight];
    std::fill_n(scalars, kEight, scalar);
    select_lanes<T>(dst, selector, src0, [&](uint32_t, uint32_t) { return scalars; }, shape);
    emit_vector(Op::Select, sizeof(T), repeats, {out, in, bits});
}

}  // namespace

template <typename T>
void compare(uint8_t *dst, Lanes src0, Lanes src1, CompareMode mode, uint32_t repeats) {
    constexpr uint32_t lanes = lanes_per_repeat(sizeof(T));
    check_mode<T>(Op::Compare, mode);
    for (uint32_t done = 0; done < repeats; done += kMaxRepeats) {
        compare_once<T>(dst + done * lanes / 8, skip_repeats(src0, done), skip_repeats(src1, done), mode,
                        std::min(kMaxRepeats, repeats - done));
    }
}

template <typename T>
void compare_scalar(uint8_t *dst, Lanes src0, T scalar, CompareMode mode, uint32_t repeats) {
    constexpr uint32_t lanes = lanes_per_repeat(sizeof(T));
    check_mode<T>(Op::CompareScalar, mode);
    for (uint32_t done = 0; done < repeats; done += kMaxRepeats) {
        compare_scalar_once<T>(dst + done * lanes / 8, skip_repeats(src0, done), scalar, mode,
                               std::min(kMaxRepeats, repeats - done));
    }
}

void compares_whole_repeats(uint32_t count, uint32_t lanes) {
    if (count % lanes == 0) return;
    warn(Warning::PartOfRepeat, "Compare", "compares %u of %u elements: only whole repeats of 256 bytes take part, and the bits of the rest are left as "
         "they were; pad the operands to a multiple of %u elements", count / lanes * lanes, count, lanes);
}

template <typename T>
void compare_to_register(Lanes src0, Lanes src1, CompareMode mode, Shape shape) {
    constexpr uint32_t lanes = lanes_per_repeat(sizeof(T));
    check_mode<T>(Op::Compare, mode);
    const Operand first = vector_operand<T>(Op::Compare, "src0", src0, shape, sizeof(T));
    const Operand second = vector_operand<T>(Op::Compare, "src1", src1, shape, sizeof(T));
    uint64_t result[2] = {0, 0};
    with_relation(mode, [&](auto relation) {
        for_each_index(shape, lanes, [&](uint32_t repeat, uint32_t lane) {
            if (repeat == 0) {
                set_bit(reinterpret_cast<uint8_t *>(result), lane,
                        relation(*lane_pointer<T>(src0, 0, lane), *lane_pointer<T>(src1, 0, lane)));
            }
        });
    });
    std::memcpy(block().compare_mask, result, sizeof result);
    emit_vector(Op::Compare, sizeof(T), repeats_of(shape, sizeof(T)), {kNoOperand, first, second});
}

template <typename T>
void select(Lanes dst, Selector selector, Lanes src0, Lanes src1, Shape shape) {
    constexpr uint32_t lanes = lanes_per_repeat(sizeof(T));
    const uint32_t repeats = repeats_of(shape, sizeof(T));
    const Operand out = vector_operand<T>(Op::Select, "dst", dst, shape, sizeof(T));
    const Operand first = vector_operand<T>(Op::Select, "src0", src0, shape, sizeof(T));
    const Operand second = vector_operand<T>(Op::Select, "src1", src1, shape, sizeof(T));
    const Operand bits = selector_operand(selector, repeats, lanes);
    set_up_register(selector);
    const auto other = [&](uint32_t repeat, uint32_t lane) { return lane_pointer<T>(src1, repeat, lane); };
    select_lanes<T>(dst, selector, src0, other, shape);
    emit_vector(Op::Select, sizeof(T), repeats, {out, first, second, bits});
}

template <typename T>
void select_scalar(Lanes dst, Selector selector, Lanes src0, T scalar, Shape shape) {
    set_up_register(selector);
    select_bits_or_scalar<T>(dst, selector, src0, scalar, shape);
}

template <typename T>
void select_by_register_scalar(Lanes dst, const uint8_t *bits, Lanes src0, Shape shape) {
    T scalar;
    std::memcpy(&scalar, block().compare_mask, sizeof scalar);
    select_bits_or_scalar<T>(dst, {bits, true}, src0, scalar, shape);
}

void store_compare_mask(uint8_t *dst) {
    const Operand out = range_operand(Op::GetCmpMask, "dst", dst, kRegisterBytes, kRegisterAlignment);
    std::memcpy(dst, block().compare_mask, kRegisterBytes);
    emit_vector(Op::GetCmpMask, sizeof(uint16_t), 1, {out});
}

void load_compare_mask(const uint8_t *src) {
    const Operand in = range_operand(Op::SetCmpMask, "src", src, kRegisterBytes, kRegisterAlignment);
    std::memcpy(block().compare_mask, src, kRegisterBytes);
    emit_vector(Op::SetCmpMask, sizeof(uint16_t), 1, {kNoOperand, in});
}

template void compare<half>(uint8_t *, Lanes, Lanes, CompareMode, uint32_t);
template void compare<float>(uint8_t *, Lanes, Lanes, CompareMode, uint32_t);
template void compare<int32_t>(uint8_t *, Lanes, Lanes, CompareMode, uint32_t);
template void compare_scalar<half>(uint8_t *, Lanes, half, CompareMode, uint32_t);
template void compare_scalar<float>(uint8_t *, Lanes, float, CompareMode, uint32_t);
template void compare_scalar<int32_t>(uint8_t *, Lanes, int32_t, CompareMode, uint32_t);
template void compare_to_register<half>(Lanes, Lanes, CompareMode, Shape);
template void compare_to_register<float>(Lanes, Lanes, CompareMode, Shape);
template void select<half>(Lanes, Selector, Lanes, Lanes, Shape);
template void select<float>(Lanes, Selector, Lanes, Lanes, Shape);
template void select_scalar<half>(Lanes, Selector, Lanes, half, Shape);
template void select_scalar<float>(Lanes, Selector, Lanes, float, Shape);
template void select_by_register_scalar<half>(Lanes, const uint8_t *, Lanes, Shape);
template void select_by_register_scalar<float>(Lanes, const uint8_t *, Lanes, Shape);

}  // namespace asim
