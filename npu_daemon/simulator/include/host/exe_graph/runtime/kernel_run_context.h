// The context of operator calls under its older path.
#pragma once
#include "exe_graph/runtime/extended_kernel_context.h"
