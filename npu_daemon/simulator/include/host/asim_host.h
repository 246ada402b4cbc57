// Everything that host code includes: the precompiled header of host builds.
#pragma once

#include "base/alog_pub.h"
#include "base/err_msg.h"
#include "graph/utils/type_utils.h"
#include "platform/platform_info.h"
#include "register/op_def_registry.h"
#include "securec.h"
#include "tiling/tiling_api.h"
