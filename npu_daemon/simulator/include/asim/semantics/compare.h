// Comparisons to bit masks, and selection by bit masks.
#pragma once
#include "asim/semantics/vector.h"

namespace asim {

template <typename T>
constexpr uint32_t lanes_per_repeat_of = kRepeatBytes / sizeof(T);

enum class CompareMode : uint8_t { LT, GT, EQ, LE, GE, NE };

// Where an instruction finds its selection bits: bit i of `bits` belongs to lane i of a repeat.
struct Selector {
    const uint8_t *bits = nullptr;      // null: the CMPMASK register
    Flag advances = false;              // each repeat takes the bits that follow those of the repeat before
};

// One bit per element, packed from the lowest bit of `dst` on. The hardware compares whole repeats, whatever the mask.
template <typename T>
ASIM_API void compare(uint8_t *dst, Lanes src0, Lanes src1, CompareMode mode, uint32_t repeats);
template <typename T>
ASIM_API void compare_scalar(uint8_t *dst, Lanes src0, T scalar, CompareMode mode, uint32_t repeats);

// Warns where `count` elements are no whole repeats: the rest is not compared, and keeps the bits that were there.
ASIM_API void compares_whole_repeats(uint32_t count, uint32_t lanes);

// One repeat, its bits left in the CMPMASK register.
template <typename T>
ASIM_API void compare_to_register(Lanes src0, Lanes src1, CompareMode mode, Shape shape);

// dst = bit ? src0 : src1
template <typename T>
ASIM_API void select(Lanes dst, Selector selector, Lanes src0, Lanes src1, Shape shape);
template <typename T>
ASIM_API void select_scalar(Lanes dst, Selector selector, Lanes src0, T scalar, Shape shape);

// The scalar is the one that the CMPMASK register holds.
template <typename T>
ASIM_API void select_by_register_scalar(Lanes dst, const uint8_t *bits, Lanes src0, Shape shape);

ASIM_API void store_compare_mask(uint8_t *dst);
ASIM_API void load_compare_mask(const uint8_t *src);

}  // namespace asim
