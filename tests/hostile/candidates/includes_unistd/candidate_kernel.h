// Gets at the host's functions by their header.
#pragma once
#include "honest.h"

#include <unistd.h>

class Candidate : public HonestKernel {
public:
};
