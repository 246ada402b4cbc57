// Data movement inside the unified buffer: gathering, broadcasting and copying. Element types matter only by size.
#pragma once
#include "asim/semantics/vector.h"

namespace asim {

// The type that moves the bits of a T.
template <typename T>
using BitsOf = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;

// dst[i] = element at byte offset offsets[i] from src + base_bytes.
template <typename Bits>
ASIM_API void gather(Lanes dst, const uint8_t *src, const uint8_t *offsets, uint32_t base_bytes, Shape shape);

// Eight 32 B blocks a repeat, each from a byte offset of its own.
template <typename Bits>
ASIM_API void gather_blocks(Lanes dst, const uint8_t *src, const uint8_t *offsets, uint32_t repeats);

// Which elements of a repeat GatherMask keeps.
struct GatherPattern {
    uint8_t fixed = 0;                  // 1 to 7: a built-in pattern
    const uint8_t *bits = nullptr;      // else one bit an element
    uint32_t repeat_stride = 0;         // of the bits, in 32 B blocks
};

// Packs the chosen elements of `repeats` repeats of `elements` elements each; returns how many were chosen.
template <typename Bits>
ASIM_API uint64_t gather_mask(uint8_t *dst, Lanes src, GatherPattern pattern, uint32_t elements, uint32_t repeats);

// Fills eight 32 B blocks a repeat, each with one of eight elements that follow each other in src.
template <typename Bits>
ASIM_API void broadcast_blocks(Lanes dst, const uint8_t *src, uint32_t repeats);

// dst = src
template <typename Bits>
ASIM_API void copy_lanes(Lanes dst, Lanes src, Shape shape);

// What the lanes of a progression are: `lanes` of each of `repeats` repeats, fewer in the last.
struct ProgressionShape {
    uint32_t lanes = 0;
    uint32_t repeats = 0;
    uint32_t last_lanes = 0;
};

// first, first + step, ... The library stores one block by the scalar unit and adds to that to get the others.
template <typename T>
ASIM_API void progression(Lanes dst, T first, T step, ProgressionShape shape);

}  // namespace asim
