// Another path of the same header.
#pragma once
#include "exe_graph/runtime/tiling_context.h"
