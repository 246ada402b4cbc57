// Gather, Gatherb and GatherMask.
#pragma once
#include "asim/api/tensor.h"
