// What this header declares (Pad, UnPad) is not simulated; kernels also include it for nothing.
#pragma once
#include "kernel_operator.h"
