// Structures of tiling data that host and kernel share: the host has those of its tiling library.
#pragma once
#include "tiling/tiling_api.h"
