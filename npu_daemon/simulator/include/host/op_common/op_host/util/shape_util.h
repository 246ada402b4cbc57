// The same helpers under their longer path.
#pragma once
#include "util/shape_util.h"
