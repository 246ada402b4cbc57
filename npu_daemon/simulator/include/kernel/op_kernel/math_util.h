// Whole-number helpers of kernels in the operator libraries; divisors are positive.
#pragma once
#include "kernel_operator.h"

namespace Ops {
namespace Base {

template <class Int>
__aicore__ inline Int CeilDiv(Int value, Int divisor) {
    return static_cast<Int>(value / divisor + (value % divisor != 0 ? 1 : 0));
}
template <class Int>
__aicore__ inline Int FloorDiv(Int value, Int divisor) {
    return static_cast<Int>(value / divisor);
}
template <class Int>
__aicore__ inline Int CeilAlign(Int value, Int alignment) {
    return static_cast<Int>(CeilDiv(value, alignment) * alignment);
}
template <class Int>
__aicore__ inline Int FloorAlign(Int value, Int alignment) {
    return static_cast<Int>(value / alignment * alignment);
}

}  // namespace Base
}  // namespace Ops
