// The same under its longer path.
#pragma once
#include "op_kernel/math_util.h"
