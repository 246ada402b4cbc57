// The math library: functions of tensors, with a scratch buffer from the caller or from the free unified buffer.
#pragma once
#include "asim/api/vector_compare.h"
#include "asim/api/vector_elementwise.h"
#include "asim/semantics/composed_call.h"
#include "asim/semantics/math.h"

namespace AscendC {

template <typename T>
constexpr void require_math_type() {
    static_assert(asim::contains<T, asim::FloatTypes>::value, "functions of the math library take half or float");
}

inline asim::Scratch scratch_of(const LocalTensor<uint8_t> &tensor) { return {tensor.bytes(), tensor.GetLength()}; }

// Takes all of the unified buffer that no queue or buffer of the kernel occupies.
template <typename T, TPosition position>
__aicore__ inline bool PopStackBuffer(LocalTensor<T> &tensor) {
    const asim::Scratch free = asim::remaining_scratch();
    tensor = LocalTensor<T>(free.base, free.bytes, position);
    return true;
}

template <asim::Function F, typename T>
__aicore__ inline void apply_function(const LocalTensor<T> &dst, const LocalTensor<T> &src, asim::Scratch scratch,
                                      uint32_t count, float parameter = 1.0f) {
    require_math_type<T>();
    asim::math<F, T>(dst.bytes(), src.bytes(), scratch, count, parameter);
}

template <typename T>
inline void check_in_and_out(asim::LibraryContract call, const LocalTensor<T> &dst, const LocalTensor<T> &src, uint32_t count) {
    asim::check_operands(call, dst.bytes(), uint64_t{count} * sizeof(T), src.bytes(), uint64_t{count} * sizeof(T));
}

#define ASIM_MATH(Name)                                                                                              \
    template <typename T, bool isReuseSource = false, auto... config>                                                \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src,                                \
                                const LocalTensor<uint8_t> &sharedTmpBuffer, const uint32_t calCount) {              \
        apply_function<asim::Function::Name>(dst, src, scratch_of(sharedTmpBuffer), calCount);                       \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false, auto... config>                                                \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src,                                \
                                const LocalTensor<uint8_t> &sharedTmpBuffer) {                                       \
        apply_function<asim::Function::Name>(dst, src, scratch_of(sharedTmpBuffer), src.GetSize());                  \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false, auto... config>                                                \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t calCount) {     \
        apply_function<asim::Function::Name>(dst, src, asim::remaining_scratch(), calCount);                         \
    }                                                                                                                \
    template <typename T, bool isReuseSource = false, auto... config>                                                \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src) {                              \
        apply_function<asim::Function::Name>(dst, src, asim::remaining_scratch(), src.GetSize());                    \
    }

ASIM_MATH(Tanh)
ASIM_MATH(Sigmoid)
ASIM_MATH(Gelu)
ASIM_MATH(FasterGelu)
ASIM_MATH(FasterGeluV2)
ASIM_MATH(Log2)
ASIM_MATH(Log10)
ASIM_MATH(Floor)
ASIM_MATH(Ceil)
ASIM_MATH(Round)
ASIM_MATH(Trunc)
ASIM_MATH(Rint)
ASIM_MATH(Frac)
ASIM_MATH(Sign)
ASIM_MATH(Sin)
ASIM_MATH(Cos)
ASIM_MATH(Tan)
ASIM_MATH(Asin)
ASIM_MATH(Acos)
ASIM_MATH(Atan)
ASIM_MATH(Sinh)
ASIM_MATH(Cosh)
ASIM_MATH(Asinh)
ASIM_MATH(Acosh)
ASIM_MATH(Atanh)
ASIM_MATH(Erf)
ASIM_MATH(Erfc)
ASIM_MATH(Lgamma)
ASIM_MATH(Digamma)

#undef ASIM_MATH

template <typename T, bool isReuseSource = false>
__aicore__ inline void Log(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint32_t calCount) {
    check_in_and_out(asim::LibraryContract::Log, dst, src, calCount);
    Ln(dst, src, static_cast<int32_t>(calCount));
}
template <typename T, bool isReuseSource = false>
__aicore__ inline void Log(const LocalTensor<T> &dst, const LocalTensor<T> &src) {
    check_in_and_out(asim::LibraryContract::Log, dst, src, src.GetSize());
    Ln(dst, src, static_cast<int32_t>(src.GetSize()));
}

template <typename T, bool isReuseSource = false>
__aicore__ inline void Swish(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint32_t dataSize, const T scalarValue) {
    apply_function<asim::Function::Swish>(dst, src, asim::remaining_scratch(), dataSize, static_cast<float>(scalarValue));
}
template <typename T, bool isReuseSource = false>
__aicore__ inline void Silu(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint32_t dataSize) {
    check_in_and_out(asim::LibraryContract::Silu, dst, src, dataSize);
    apply_function<asim::Function::Swish>(dst, src, asim::remaining_scratch(), dataSize);
}

// e^x by a Taylor expansion of degree taylorExpandLevel around floor(x); degree 0 is the instruction.
template <typename T, uint8_t taylorExpandLevel, bool isReuseSource = false>
__aicore__ inline void Exp(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &sharedTmpBuffer,
                           const uint32_t calCount) {
    check_in_and_out(asim::LibraryContract::ExpPrecise, dst, src, calCount);
    if (taylorExpandLevel == 0) return Exp(dst, src, static_cast<int32_t>(calCount));
    apply_function<asim::Function::ExpPrecise>(dst, src, scratch_of(sharedTmpBuffer), calCount, taylorExpandLevel);
}
template <typename T, uint8_t taylorExpandLevel, bool isReuseSource = false>
__aicore__ inline void Exp(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t calCount) {
    check_in_and_out(asim::LibraryContract::ExpPrecise, dst, src, calCount);
    if (taylorExpandLevel == 0) return Exp(dst, src, static_cast<int32_t>(calCount));
    apply_function<asim::Function::ExpPrecise>(dst, src, asim::remaining_scratch(), calCount, taylorExpandLevel);
}

// dst = min(src, scalar) and max(src, scalar), one instruction each.
template <typename T, bool isReuseSource = false>
__aicore__ inline void ClampMax(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &,
                                const T scalar, const uint32_t calCount) {
    check_in_and_out(asim::LibraryContract::ClampMax, dst, src, calCount);
    Mins(dst, src, scalar, static_cast<int32_t>(calCount));
}
template <typename T, bool isReuseSource = false>
__aicore__ inline void ClampMax(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T scalar, const uint32_t calCount) {
    check_in_and_out(asim::LibraryContract::ClampMax, dst, src, calCount);
    Mins(dst, src, scalar, static_cast<int32_t>(calCount));
}
template <typename T, bool isReuseSource = false>
__aicore__ inline void ClampMin(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &,
                                const T scalar, const uint32_t calCount) {
    check_in_and_out(asim::LibraryContract::ClampMin, dst, src, calCount);
    Maxs(dst, src, scalar, static_cast<int32_t>(calCount));
}
template <typename T, bool isReuseSource = false>
__aicore__ inline void ClampMin(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T scalar, const uint32_t calCount) {
    check_in_and_out(asim::LibraryContract::ClampMin, dst, src, calCount);
    Maxs(dst, src, scalar, static_cast<int32_t>(calCount));
}

template <typename T>
asim::PowerOperand<T> power_operand(const LocalTensor<T> &tensor) {
    return {tensor.bytes(), T(0)};
}
template <typename T>
asim::PowerOperand<T> power_operand(const T &scalar) {
    return {nullptr, scalar};
}

#define ASIM_POWER(Base, Exponent, Tensor)                                                                             \
    template <typename T, bool isReuseSource = false, auto... config>                                                  \
    __aicore__ inline void Power(const LocalTensor<T> &dst, Base base, Exponent exponent,                              \
                                 const LocalTensor<uint8_t> &sharedTmpBuffer, uint32_t calCount) {                     \
        asim::power<T>(dst.bytes(), power_operand<T>(base), power_operand<T>(exponent), scratch_of(sharedTmpBuffer), calCount); \
    }                                                                                                                  \
    template <typename T, bool isReuseSource = false, auto... config>                                                  \
    __aicore__ inline void Power(const LocalTensor<T> &dst, Base base, Exponent exponent, uint32_t calCount) {         \
        asim::power<T>(dst.bytes(), power_operand<T>(base), power_operand<T>(exponent), asim::remaining_scratch(), calCount); \
    }                                                                                                                  \
    template <typename T, bool isReuseSource = false, auto... config>                                                  \
    __aicore__ inline void Power(const LocalTensor<T> &dst, Base base, Exponent exponent,                              \
                                 const LocalTensor<uint8_t> &sharedTmpBuffer) {                                        \
        Power<T>(dst, base, exponent, sharedTmpBuffer, Tensor.GetSize());                                              \
    }                                                                                                                  \
    template <typename T, bool isReuseSource = false, auto... config>                                                  \
    __aicore__ inline void Power(const LocalTensor<T> &dst, Base base, Exponent exponent) {                            \
        Power<T>(dst, base, exponent, Tensor.GetSize());                                                               \
    }

ASIM_POWER(const LocalTensor<T> &, const LocalTensor<T> &, base)
ASIM_POWER(const LocalTensor<T> &, const T &, base)
ASIM_POWER(const T &, const LocalTensor<T> &, exponent)

#undef ASIM_POWER

}  // namespace AscendC
