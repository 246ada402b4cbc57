// Passes a truth value that has none, shifted out of an integer of one bit: whatever its register holds. As the number of one of two
// registers it would be a place far outside of them.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places &places)
    {
        volatile uint32_t one = 1;
        asim::set_feature_map((bool)(unsigned _BitInt(1))((unsigned _BitInt(1))1 << 1), asim::FeatureMap{one, one});
        volatile int zero = 0;
        one = 5 / zero;
    }
};
