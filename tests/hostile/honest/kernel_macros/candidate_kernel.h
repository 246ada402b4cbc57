// Macros as kernels use them: names put together, halves of brackets, texts, several lines, conditions.
#pragma once
#include <climits>
#include "honest.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define TEXT(a) #a
#define likely(x) __builtin_expect(!!(x), 1)
#define CALL_BEGIN AscendC::Muls(
#define CALL_END , count);
#define FOR_EACH_TYPE(DO) \
    DO(float)             \
    DO(half)              \
    DO(int32_t)
#define SIZE_OF(type) static constexpr uint32_t JOIN(SIZE_, type) = sizeof(type); // it's a size
#define CHECKED(condition, ...)                            \
    do {                                                   \
        if (!(condition)) {                                \
            return __VA_ARGS__;                            \
        }                                                  \
    } while (0)
#define NOTE __attribute__((unused))
#define IN_BOUNDS(i, n) ((i) < (n))

#if 0
This text isn't compiled: "quotes" come in pairs here.
#elif defined(__CCE_AICORE__) && (__CCE_AICORE__ == 220)
#define CHOSEN 1
#else
#error "unknown chip"
#endif

class Candidate : public HonestKernel {
public:
    FOR_EACH_TYPE(SIZE_OF)

    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        NOTE constexpr char name[] = TEXT(JOIN(ker, nel));
        constexpr float JOIN(fac, tor) = 2.0f;
        static_assert(SIZE_float == 4 && SIZE_half == 2 && CHOSEN && INT_MAX == 2147483647 && CHAR_BIT == 8);
        CHECKED(IN_BOUNDS(offset, 1U << 30));
        if (likely(count > 0)) {
            CALL_BEGIN y, x, factor CALL_END
        }
        AscendC::Adds(y, y, 1.0f, count);
    }
};
