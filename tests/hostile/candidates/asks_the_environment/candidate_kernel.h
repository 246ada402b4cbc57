// Looks for secrets in the environment.
#pragma once
#include "honest.h"

extern "C" char* getenv(const char*);

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        getenv("OPENAI_API_KEY");
    }
};
