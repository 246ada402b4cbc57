// Computes at compile time for an hour.
#pragma once
#include "honest.h"

constexpr uint64_t Count(uint64_t to)
{
    uint64_t sum = 0;
    for (uint64_t at = 0; at < to; ++at) {
        for (uint64_t turn = 0; turn < to; ++turn) {
            sum += at ^ turn;
        }
    }
    return sum;
}
constexpr uint64_t COUNTED = Count(1ull << 31);

class Candidate : public HonestKernel {
public:
};
