// Shapes of outputs, element by element: that of the first input.
#pragma once

#include "exe_graph/runtime/infer_shape_context.h"
#include "graph/types.h"

namespace Ops {
namespace Base {

inline ge::graphStatus InferShape4Elewise(gert::InferShapeContext *context) {
    const gert::Shape *input = context->GetInputShape(0);
    gert::Shape *output = context->GetOutputShape(0);
    if (input == nullptr || output == nullptr) return ge::GRAPH_FAILED;
    *output = *input;
    return ge::GRAPH_SUCCESS;
}

}  // namespace Base
}  // namespace Ops
