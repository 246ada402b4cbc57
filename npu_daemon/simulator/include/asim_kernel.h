// Everything that a kernel build needs: the precompiled header of kernels.
#pragma once

#include "asim/api/launch.h"
#include "kernel_operator.h"
