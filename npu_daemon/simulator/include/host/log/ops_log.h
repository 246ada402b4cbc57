// The logging macros of operator host code. Errors go to standard error, where a failed tiling run shows its last
// lines; other levels are dropped. What the message is about (a name or a context) is not evaluated.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>

#include "exe_graph/runtime/tiling_context.h"

#define OPS_LOG_STUB_D(about, ...) ((void)0)
#define OPS_LOG_STUB_I(about, ...) ((void)0)
#define OPS_LOG_STUB_W(about, ...) ((void)0)
#define OPS_LOG_STUB_EVENT(about, ...) ((void)0)
#define OPS_LOG_STUB_E(about, format, ...) \
    ((void)std::fprintf(stderr, format, ##__VA_ARGS__), (void)std::fputc('\n', stderr))
#define OPS_LOG_STUB_FULL(level, about, ...) ((void)0)
#define OPS_LOG_STUB_IF(condition, log, action) \
    do {                                        \
        if (condition) {                        \
            log;                                \
            action;                             \
        }                                       \
    } while (0)
// Of a module and level by their names, as `OpLogSub(OP, DLOG_ERROR, about, ...)`.
#define OpLogSub(module, level, about, ...) OPS_LOG_SUB_##level(about, __VA_ARGS__)
#define OPS_LOG_SUB_DLOG_ERROR(about, ...) OPS_LOG_STUB_E(about, __VA_ARGS__)
#define OPS_LOG_SUB_DLOG_WARN(about, ...) ((void)0)
#define OPS_LOG_SUB_DLOG_INFO(about, ...) ((void)0)
#define OPS_LOG_SUB_DLOG_DEBUG(about, ...) ((void)0)
#define OPS_INNER_ERR_STUB(code, about, ...) OPS_LOG_STUB_E(about, __VA_ARGS__)
#define OPS_CALL_ERR_STUB(code, about, ...) OPS_LOG_STUB_E(about, __VA_ARGS__)

#define OPS_LOG_D(...) OPS_LOG_STUB_D(__VA_ARGS__)
#define OPS_LOG_I(...) OPS_LOG_STUB_I(__VA_ARGS__)
#define OPS_LOG_W(...) OPS_LOG_STUB_W(__VA_ARGS__)
#define OPS_LOG_E(...) OPS_LOG_STUB_E(__VA_ARGS__)
#define OPS_LOG_E_WITHOUT_REPORT(...) OPS_LOG_STUB_E(__VA_ARGS__)
#define OPS_LOG_EVENT(...) OPS_LOG_STUB_EVENT(__VA_ARGS__)
#define OPS_LOG_FULL(...) OPS_LOG_STUB_FULL(__VA_ARGS__)
#define OPS_LOG_D_FULL(...) ((void)0)
#define OPS_LOG_I_FULL(...) ((void)0)
#define OPS_LOG_W_FULL(...) ((void)0)
#define OPS_LOG_D_IF(condition, about, action, ...) OPS_LOG_STUB_IF(condition, (void)0, action)
#define OPS_LOG_I_IF(condition, about, action, ...) OPS_LOG_STUB_IF(condition, (void)0, action)
#define OPS_LOG_W_IF(condition, about, action, ...) OPS_LOG_STUB_IF(condition, (void)0, action)
#define OPS_LOG_EVENT_IF(condition, about, action, ...) OPS_LOG_STUB_IF(condition, (void)0, action)
#define OPS_LOG_E_IF(condition, about, action, ...) \
    OPS_LOG_STUB_IF(condition, OPS_LOG_E(about, __VA_ARGS__), action)
#define OPS_LOG_E_IF_NULL(about, pointer, action) \
    OPS_LOG_STUB_IF((pointer) == nullptr, OPS_LOG_E(about, "%s is a null pointer", #pointer), action)
#define OPS_CHECK(condition, log, action) OPS_LOG_STUB_IF(condition, log, action)
