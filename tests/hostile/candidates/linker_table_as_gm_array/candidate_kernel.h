// Names a page of its library, with the addresses of what counts its work, as where its arrays in global memory lie, so that
// it may write there.
#pragma once
#include "honest.h"

static const uint64_t table[600] = {1, 2, 3};

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places &places)
    {
        volatile uint64_t index = 1;
        if (table[index] == 99) return;
        volatile uint64_t *slots = (volatile uint64_t *)(((uint64_t)table + 16384) & ~4095ull);
        for (int i = 0; i < 8; ++i) slots[i] = slots[7];
    }
};

#define __start_asim_gm_static ((uint8_t *)(((uint64_t)table + 16384) & ~4095ull))
#define __stop_asim_gm_static ((uint8_t *)((((uint64_t)table + 16384) & ~4095ull) + 4096))
