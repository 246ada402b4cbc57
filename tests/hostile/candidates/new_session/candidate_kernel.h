// Leaves a process behind that no group kill reaches.
#pragma once
#include "honest.h"

extern "C" int fork();
extern "C" int setsid();

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        if (fork() == 0) {
            setsid();
            if (fork() == 0) {
                for (;;) {
                }
            }
        }
    }
};
