// Whole-number helpers of tiling functions. A divisor or alignment of 0 is answered and not an error, as tiling functions expect.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace Ops {
namespace Base {

template <class Int, class = std::enable_if_t<std::is_integral_v<Int>>>
Int FloorDiv(Int value, Int divisor) {
    return divisor == 0 ? value : value / divisor;
}

template <class Int, class = std::enable_if_t<std::is_integral_v<Int>>>
Int CeilDiv(Int value, Int divisor) {
    if (divisor == 0) return value;
    const bool up = value % divisor != 0 && (value < 0) == (divisor < 0);
    return value / divisor + (up ? 1 : 0);
}

template <class Int, class = std::enable_if_t<std::is_integral_v<Int>>>
Int FloorAlign(Int value, Int alignment) {
    return alignment == 0 ? 0 : value / alignment * alignment;
}

// The next multiple of `alignment`; the largest number of the type where that would overflow.
template <class Int, class = std::enable_if_t<std::is_integral_v<Int>>>
Int CeilAlign(Int value, Int alignment) {
    if (alignment == 0) return 0;
    const Int count = CeilDiv(value, alignment);
    return count > std::numeric_limits<Int>::max() / alignment ? std::numeric_limits<Int>::max() : count * alignment;
}

template <class Float, class = std::enable_if_t<std::is_floating_point_v<Float>>>
bool IsFloatEqual(Float left, Float right) {
    if (std::isinf(left) || std::isinf(right)) return left == right;
    return std::fabs(left - right) <= std::numeric_limits<Float>::epsilon();
}

// The largest power of two that is not above `value`; 0 of 0.
inline uint64_t LastPow2(uint64_t value) { return value == 0 ? 0 : uint64_t{1} << (63 - __builtin_clzll(value)); }

}  // namespace Base
}  // namespace Ops
