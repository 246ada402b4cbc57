// Reductions over blocks, repeats and whole tensors.
#pragma once
#include "asim/api/tensor.h"
