// Another path of the same header.
#pragma once
#include "tiling/tiling_api.h"
