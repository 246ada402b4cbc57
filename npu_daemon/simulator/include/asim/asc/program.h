// What programs with launches of their own read first.
#pragma once

#include "kernel_operator.h"

#include "asim/asc/launch.h"
