// Structures of tiling data that host and kernel share: the host has those of its tiling library, with setters in optiling, and the
// plain ones that the kernel reads.
#pragma once
#include "kernel_tiling/plain_tiling.h"
#include "tiling/tiling_api.h"

using AscendC::tiling::SoftMaxTiling;
using AscendC::tiling::TCubeTiling;
