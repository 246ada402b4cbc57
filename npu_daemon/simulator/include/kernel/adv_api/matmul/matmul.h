// Part of the API that kernels also include by itself.
#pragma once
#include "lib/matmul_intf.h"
