// What hosts of experimental operators include beside CANN: checks that end a tiling function, and messages.
#ifndef CANN_HOST
#define CANN_HOST
#include <cstdio>

#include "tiling/platform/platform_ascendc.h"

#define OP_LOGD(...) ((void)0)
#define OP_LOGI(...) ((void)0)
#define OP_LOGW(...) ((void)0)
#define OP_LOGE(...) ((void)0)
#define OP_CHECK_IF(condition, log, action) \
    if (condition) {                        \
        log;                                \
        action;                             \
    }
#define OP_CHECK_NULL_WITH_CONTEXT(context, pointer) \
    if ((pointer) == nullptr) return ge::GRAPH_FAILED
#endif
