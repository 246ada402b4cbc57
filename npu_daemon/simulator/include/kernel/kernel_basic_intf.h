// Part of the kernel interface under a header of its own.
#pragma once
#include "kernel_operator.h"
