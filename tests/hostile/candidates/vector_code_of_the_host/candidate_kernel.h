// Computes with the host's vector unit instead of the device's.
#pragma once
#include "honest.h"

typedef float Lanes __attribute__((vector_size(64)));

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        volatile Lanes lanes = {};
        first = lanes[0];
    }

private:
    float first = 0.0f;
};
