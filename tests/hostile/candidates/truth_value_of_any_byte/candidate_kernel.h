// Passes the byte 166 where the simulator expects a truth value and takes it as the number of one of two registers. What it would
// overwrite is the name of the last call, which the report of the fault shows.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places &places)
    {
        volatile uint8_t raw[1] = {166};
        char text[32] = "OVERWRITTEN";
        const uint64_t where = (uint64_t)(volatile char *)text;
        asim::set_feature_map(*(const volatile bool *)raw, asim::FeatureMap{(uint32_t)where, (uint32_t)(where >> 32)});
        volatile int zero = 0;
        raw[0] = 5 / zero + text[zero];
    }
};
