// Tables of functions and of objects, structures passed by value, memory functions and bit fields.
#pragma once
#include "honest.h"

#include <cstring>

// Virtual functions are outside what the compiler of devices takes: a member that says which it is does as well.
struct Step {
    bool doubles;
    __aicore__ void Run(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t count) const
    {
        if (doubles) {
            AscendC::Muls(y, x, 2.0f, count);
        } else {
            AscendC::Adds(y, x, 1.0f, count);
        }
    }
};

struct Settings {
    float scales[8];
    uint32_t counts[5];
    uint32_t first : 5;
    uint32_t second : 11;
};

__attribute__((noinline)) inline uint32_t Sum(Settings settings)
{
    settings.counts[0] += settings.first + settings.second;  // its own copy
    uint32_t total = 0;
    for (uint32_t count : settings.counts) {
        total += count;
    }
    return total;
}
__attribute__((noinline)) inline uint32_t Half(uint32_t value)
{
    return value / 2;
}
__attribute__((noinline)) inline uint32_t Same(uint32_t value)
{
    return value;
}
constexpr uint32_t (*kRounds[])(uint32_t) = {&Half, &Same};

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        Settings settings{}, other{};
        settings.counts[4] = count;
        settings.first = 3;
        settings.second = 4;
        std::memcpy(&other, &settings, sizeof other);
        const uint32_t total = Sum(other) - 7;
        const bool same = std::memcmp(&other, &settings, sizeof other) == 0;
        const uint32_t length = kRounds[same && total == count ? 1 : 0](count);
        const Step doubling{true};
        const Step adding{false};
        const Step* steps[] = {&doubling, &adding};
        steps[0]->Run(y, x, length);
        steps[1]->Run(y, y, length);
    }
};
