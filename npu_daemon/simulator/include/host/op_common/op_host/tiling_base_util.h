// The same under its longer path.
#pragma once
#include "op_host/tiling_base_util.h"
