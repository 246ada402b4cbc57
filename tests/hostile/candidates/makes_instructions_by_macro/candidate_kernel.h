// Makes an instruction of its own with the simulator's macros.
#pragma once
#include "honest.h"

ASIM_UNARY(Cheap)

using Candidate = HonestKernel;
