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
        AscendC::Muls(y, x, experimental ? edata : _end, count);
        AscendC::Adds(y, y, end, count);
    }
};
#pragma GCC diagnostic pop
