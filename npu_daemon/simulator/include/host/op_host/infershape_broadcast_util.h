// Shapes of outputs whose inputs are broadcast: axes are aligned at the last, and an extent of 1 repeats.
#pragma once

#include <algorithm>
#include <vector>

#include "exe_graph/runtime/infer_shape_context.h"
#include "graph/types.h"

namespace Ops {
namespace Base {

inline bool BroadcastShape(const std::vector<const gert::Shape *> &inputs, gert::Shape *output) {
    size_t rank = 0;
    for (const gert::Shape *each : inputs) rank = std::max(rank, each->GetDimNum());
    gert::Shape joined;
    for (size_t axis = 0; axis < rank; ++axis) {
        int64_t extent = 1;
        for (const gert::Shape *each : inputs) {
            const size_t missing = rank - each->GetDimNum();
            const int64_t own = axis < missing ? 1 : each->GetDim(axis - missing);
            if (own == 1 || own == extent) continue;
            if (extent != 1) return false;
            extent = own;
        }
        joined.AppendDim(extent);
    }
    *output = joined;
    return true;
}
inline bool BroadcastShape(const gert::Shape *left, const gert::Shape *right, gert::Shape *output) {
    return BroadcastShape(std::vector<const gert::Shape *>{left, right}, output);
}

inline ge::graphStatus InferShape4Broadcast(gert::InferShapeContext *context, size_t input_count) {
    std::vector<const gert::Shape *> inputs;
    for (size_t index = 0; index < input_count; ++index) {
        inputs.push_back(context->GetInputShape(index));
        if (inputs.back() == nullptr) return ge::GRAPH_FAILED;
    }
    gert::Shape *output = context->GetOutputShape(0);
    return output != nullptr && BroadcastShape(inputs, output) ? ge::GRAPH_SUCCESS : ge::GRAPH_FAILED;
}
inline ge::graphStatus InferShape4Broadcast(gert::InferShapeContext *context) {
    return InferShape4Broadcast(context, 2);
}

}  // namespace Base
}  // namespace Ops
