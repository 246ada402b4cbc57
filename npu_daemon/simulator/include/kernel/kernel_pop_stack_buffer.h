// Part of the API that kernels also include by itself.
#pragma once
#include "kernel_operator.h"
