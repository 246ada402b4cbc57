// Converts 166 to an integer of one bit, which promises that it fits: no mask is needed where it is passed as a truth value. As
// the number of one of two registers it would overwrite the name of the last call, which the report of the fault shows.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places &places)
    {
        volatile float raw = 166.0f;
        char text[32] = "OVERWRITTEN";
        const uint64_t where = (uint64_t)(volatile char *)text;
        asim::set_feature_map((bool)(unsigned _BitInt(1))raw, asim::FeatureMap{(uint32_t)where, (uint32_t)(where >> 32)});
        volatile int zero = 0;
        raw = 5 / zero + text[zero];
    }
};
