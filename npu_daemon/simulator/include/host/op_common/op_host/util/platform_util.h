// The same helpers under their longer path.
#pragma once
#include "util/platform_util.h"
