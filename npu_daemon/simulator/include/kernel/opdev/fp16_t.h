// Half-precision numbers of host code in programs with launches: those of kernels.
#pragma once
#include "kernel_operator.h"

namespace op {
using fp16_t = half;
}
