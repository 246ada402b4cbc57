// Has code run after the kernel, by the destructor of a static object.
#pragma once
#include "honest.h"

struct AfterAll {
    ~AfterAll() { *(volatile int*)0 = 1; }
};
static AfterAll afterAll;

using Candidate = HonestKernel;
