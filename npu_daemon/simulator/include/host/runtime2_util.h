// Helpers of the operator packages for tiling functions: checks, and the information made before the first call.
#pragma once
#include "exe_graph/runtime/tiling_parse_context.h"
#include "log/ops_log.h"

#define VECTOR_INNER_ERR_REPORT_TILIING(about, ...) OPS_LOG_E(about, __VA_ARGS__)
#define OP_TILING_CHECK(condition, log, action) OPS_CHECK(condition, log, action)
#define OPS_CHECK_NULL_WITH_CONTEXT(context, pointer) \
    OPS_CHECK((pointer) == nullptr, OPS_LOG_E((context)->GetNodeName(), "%s is null", #pointer), return ge::GRAPH_FAILED)

namespace optiling {

template <typename T>
T *GetCompileInfoPtr(gert::TilingParseContext *context) {
    return context->GetCompiledInfo<T>();
}

}  // namespace optiling
