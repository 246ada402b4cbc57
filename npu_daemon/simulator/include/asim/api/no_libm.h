// Functions of the host's C library that compilers turn into an instruction, so that nothing else would refuse them: the compiler
// of the device does not know them.
#pragma once
#include <cmath>

#define ASIM_NOT_IN_KERNELS(use) __attribute__((unavailable("kernels have no C library: use " use)))
extern "C" {
float sqrtf(float) ASIM_NOT_IN_KERNELS("sqrt");
}
#undef ASIM_NOT_IN_KERNELS
