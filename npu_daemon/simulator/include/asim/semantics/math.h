// Functions of the math library, each a sequence of vector instructions on a scratch buffer.
#pragma once
#include <cstdint>

#include "asim/semantics/vector.h"

namespace asim {

enum class ASIM_API_TYPE Function : uint8_t {
    Tanh, Sigmoid, Swish, Gelu, FasterGelu, FasterGeluV2, Log2, Log10, ExpPrecise,
    Floor, Ceil, Round, Trunc, Rint, Frac, Sign,
    Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Asinh, Acosh, Atanh, Erf, Erfc, Lgamma, Digamma
};

// Unified buffer that a library call may overwrite.
struct Scratch {
    uint8_t *base = nullptr;
    uint32_t bytes = 0;
};

// What no buffer of the kernel occupies: where library calls without a scratch argument work.
ASIM_API Scratch remaining_scratch();

// dst = F(src) for the first `count` elements, in chunks that fit the scratch buffer; dst may be src.
template <Function F, typename T>
ASIM_API void math(uint8_t *dst, const uint8_t *src, Scratch scratch, uint32_t count, float parameter = 1.0f);

// An operand of Power: `tensor`, or `scalar` when there is no tensor.
template <typename T>
struct PowerOperand {
    const uint8_t *tensor = nullptr;
    T scalar = T(0);
};

// dst = base ^ exponent
template <typename T>
ASIM_API void power(uint8_t *dst, PowerOperand<T> base, PowerOperand<T> exponent, Scratch scratch, uint32_t count);

}  // namespace asim
