// Pragmas, attributes, names and arrays of tiling programs, as GCC takes them.
#pragma once
#include <cstdint>
#include "honest.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

#pragma region arithmetic
__attribute__((hot)) inline uint32_t Twice(uint32_t value)
{
    return 2 * value;
}
__attribute__((const)) inline uint32_t Rounded(uint32_t count)
{
    return (count + 7) / 8 * 8;
}
#pragma endregion

struct Nothing {};
struct Lengths {
    [[no_unique_address]] Nothing nothing;
    uint32_t first[2] = {0};
};

thread_local uint32_t calls = 0;
thread_local char text[8192] = "as long as it is";

struct Plan : HonestPlan {
    static uint32_t TileLength()
    {
        const uint32_t vector_size = Rounded(Cores());
        const bool experimental = vector_size >= Cores();
        uint32_t edata = 0, end = 0, _end = 1;
        uint32_t lengths[vector_size] = {0};
        uint32_t others[end + 2] = {};
        Lengths own{};
#pragma GCC unroll 4
        for (uint32_t i = 0; i < vector_size; ++i) {
            lengths[i] += 32;
        }
#pragma clang loop vectorize(enable)
        for (uint32_t i = 0; i < vector_size; ++i) {
            end += lengths[i] + edata;
        }
        calls += text[0] == 'a';
        end -= calls - 1;
        return experimental ? Twice(end) * _end + others[1] + own.first[1] : 0;
    }
};
#pragma GCC diagnostic pop
