// The same helpers under their longer path.
#pragma once
#include "util/const_util.h"
