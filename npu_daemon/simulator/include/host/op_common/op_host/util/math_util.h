// The same helpers under their longer path.
#pragma once
#include "util/math_util.h"
