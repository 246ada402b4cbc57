// The vector mask register, and how an instruction's mask argument becomes the lanes it works on.
#pragma once
#include "asim/api/tensor.h"
#include "asim/machine/registers.h"
#include "asim/semantics/vector.h"

namespace asim {

// Lanes from the mask register, for calls that do not set it themselves (isSetMask = false).
inline Shape register_shape(uint32_t repeats) {
    return counter_mode() ? Shape::counter(static_cast<int64_t>(mask_low())) : Shape::masked(mask_low(), mask_high(), repeats);
}

// `mask` leading lanes of each repeat; in counter mode the number of elements in all. A mask that comes with a call
// stays in the register (asc-devkit docs, Memory矢量计算/SIMD计算说明/掩码.md).
template <typename T, bool set_mask>
Shape mask_shape(uint64_t mask, uint32_t repeats) {
    if (!set_mask) return register_shape(repeats);
    keep_leading_mask(mask);
    return counter_mode() ? Shape::counter(static_cast<int64_t>(mask)) : Shape::leading(mask, repeats);
}

// One bit a lane.
template <typename T, bool set_mask>
Shape mask_shape(const uint64_t mask[], uint32_t repeats) {
    if (!set_mask) return register_shape(repeats);
    keep_mask(mask[0], mask[1]);
    return counter_mode() ? Shape::counter(static_cast<int64_t>(mask[0])) : Shape::masked(mask[0], mask[1], repeats);
}

// The first `count` elements, contiguous. A call with a count leaves the register at its default (same page); without a
// mask of its own it takes the register as it is.
template <bool set_mask = true>
Shape counted_shape(int64_t count) {
    if (!set_mask) return register_shape(1);
    reset_mask();
    return Shape::first(count);
}

}  // namespace asim

namespace AscendC {

enum class MaskMode : uint8_t { NORMAL = 0, COUNTER };

__aicore__ inline void SetMaskCount() { asim::set_counter_mode(true); }
__aicore__ inline void SetMaskNorm() { asim::set_counter_mode(false); }

template <typename T, MaskMode mode = MaskMode::NORMAL>
__aicore__ inline void SetVectorMask(const uint64_t maskHigh, const uint64_t maskLow) {
    asim::keep_mask(maskLow, maskHigh);
}

template <typename T, MaskMode mode = MaskMode::NORMAL>
__aicore__ inline void SetVectorMask(int32_t length) {
    if (mode == MaskMode::COUNTER) {
        asim::keep_mask(static_cast<uint64_t>(length), 0);
        return;
    }
    const asim::Shape shape = asim::Shape::leading(static_cast<uint64_t>(length), 1);
    asim::keep_mask(shape.mask[0], shape.mask[1]);
}

__aicore__ inline void ResetMask() { asim::keep_mask(~0ull, ~0ull); }

}  // namespace AscendC
