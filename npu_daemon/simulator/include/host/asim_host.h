// The precompiled header of host builds: what nearly all host code includes. What declares names that operators have to include
// for themselves (tiling/tiling_api.h: TCubeTiling and SoftMaxTiling) is not in it.
#pragma once

#include <cstdlib>

#include "base/alog_pub.h"
#include "base/err_msg.h"
#include "graph/utils/type_utils.h"
#include "platform/platform_info.h"
#include "register/op_def_registry.h"
#include "securec.h"
