// The same helpers under their path in the operator libraries.
#pragma once
#include "util/math_util.h"
