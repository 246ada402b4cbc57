// bfloat16 numbers of host code in programs with launches: those of kernels.
#pragma once
#include "kernel_operator.h"

namespace op {
using bfloat16 = bfloat16_t;
}
