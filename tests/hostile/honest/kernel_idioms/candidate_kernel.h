// Pragmas, attributes and names that mean nothing here.
#pragma once
#include "honest.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

#pragma region arithmetic
__attribute__((hot)) __aicore__ inline float Twice(float value)
{
    return 2.0f * value;
}
__attribute__((const)) __aicore__ inline uint32_t Rounded(uint32_t count)
{
    return (count + 7) / 8 * 8;
}
#pragma endregion

constexpr static int32_t INT_MAX = 2147483647;

struct Nothing {};
struct Pair {
    [[no_unique_address]] Nothing nothing;
    float first;
};

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        const uint32_t vector_size = Rounded(count);
        const bool experimental = vector_size >= count;
        float edata = 0.0f, end = 1.0f, _end = 0.0f;
        Pair pair{{}, 1.0f};
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            edata += Twice(0.5f) * pair.first;
        }
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            end += Rounded(i) < INT_MAX ? 0.0f : 1.0f;
        }
        float starts[16] = {};
#pragma clang loop vectorize(enable) interleave(enable)
        for (uint32_t i = 0; i < 16; ++i) {
            starts[i] = starts[i] * 0.5f + static_cast<int32_t>(count);
        }
        _end += starts[offset % 16] - static_cast<int32_t>(count);
        AscendC::Muls(y, x, experimental ? edata : _end, count);
        AscendC::Adds(y, y, end, count);
    }
};
#pragma GCC diagnostic pop
