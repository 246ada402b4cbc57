// A million error messages.
#pragma once
#include "honest.h"

#define E1 q w e r t;
#define E2 E1 E1 E1 E1 E1 E1 E1 E1 E1 E1
#define E3 E2 E2 E2 E2 E2 E2 E2 E2 E2 E2
#define E4 E3 E3 E3 E3 E3 E3 E3 E3 E3 E3
E4 E4 E4

class Candidate : public HonestKernel {
public:
};
