// The workspace a kernel receives.
#pragma once
#include "asim/api/tensor.h"
