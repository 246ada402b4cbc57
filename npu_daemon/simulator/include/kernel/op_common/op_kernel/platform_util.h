// The same under its longer path.
#pragma once
#include "op_kernel/platform_util.h"
