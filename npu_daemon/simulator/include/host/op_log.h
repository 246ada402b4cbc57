// Logging of operator packages below the checkout, under the name that some tiling sources know it by.
#pragma once
#include "log/ops_log.h"

#define OP_LOGD(...) OPS_LOG_D(__VA_ARGS__)
#define OP_LOGI(...) OPS_LOG_I(__VA_ARGS__)
#define OP_LOGW(...) OPS_LOG_W(__VA_ARGS__)
#define OP_LOGE(...) OPS_LOG_E(__VA_ARGS__)
