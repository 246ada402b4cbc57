// Layout, inlining and odd spellings that change nothing.
#pragma once
#include "honest.h"

#define BLOCK_BYTES 32
#define NEVER_INLINE __attribute__((noinline))

struct __attribute__((packed)) Header {
    uint8_t kind;
    uint32_t length;
};
struct alignas(BLOCK_BYTES) Row {
    float values[8];
};
union Word {
    float real;
    uint32_t bits;
};
static_assert(sizeof(Header) == 5 && alignof(Row) == 32);
static_assert(0xFF'FF == 65'535 && '\'' != '"' && R"(a "b" \ c)"[2] == '"', "it's the same");

class Candidate : public HonestKernel {
public:
    __aicore__ inline __attribute__((always_inline)) void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, [[maybe_unused]] uint32_t offset,
        uint32_t count)
    {
        [[maybe_unused]] Word one{1.0f};
        const uint32_t steps[2] = {count, 0};
        switch (Kind()) {
            case 'a':
                AscendC::Muls(y, x, 2.0f, steps[steps[1]]);
                [[fallthrough]];
            default: [[likely]]
                AscendC::Adds(y, y, one.real, [&] { return steps[0]; }());
        }
    }

private:
    [[nodiscard]] NEVER_INLINE __aicore__ static int Kind() noexcept
    {
        return u8'a';
    }
};
