// The same helpers under their path in the operator libraries.
#pragma once
#include "util/platform_util.h"
