// Works in the background.
#pragma once
#include "honest.h"

extern "C" int pthread_create(void*, const void*, void* (*)(void*), void*);

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        pthread_create(nullptr, nullptr, nullptr, nullptr);
    }
};
