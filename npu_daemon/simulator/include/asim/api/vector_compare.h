// Compare, CompareScalar and Select.
#pragma once
#include "asim/api/tensor.h"
