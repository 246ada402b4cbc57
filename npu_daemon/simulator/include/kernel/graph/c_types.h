// Element types for headers that host and kernel share: by the names of the tiling templates.
#pragma once
#include "kernel_operator.h"
