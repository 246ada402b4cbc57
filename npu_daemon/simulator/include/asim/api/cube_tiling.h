// Plans of library calls, under the names that kernels have for them.
#pragma once
#include "host/kernel_tiling/plain_tiling.h"

using AscendC::tiling::SoftMaxTiling;
using AscendC::tiling::TCubeTiling;
