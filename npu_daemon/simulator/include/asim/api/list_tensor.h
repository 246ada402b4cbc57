// Lists of tensors passed as one kernel argument.
#pragma once
#include "asim/api/tensor.h"
