// Shapes of outputs that lose the axes which the values of the second input name.
#pragma once

#include <set>

#include "exe_graph/runtime/infer_shape_context.h"
#include "log/log.h"
#include "util/shape_util.h"

namespace Ops {
namespace Base {

template <class Axis>
ge::graphStatus ReduceDims(const gert::Shape *input, const gert::Tensor *axes, int32_t axis_count, bool keep_dims,
                           gert::Shape *output) {
    const Axis *named = axes->GetData<Axis>();
    const int64_t rank = static_cast<int64_t>(input->GetDimNum());
    std::set<int64_t> reduced;
    for (int32_t index = 0; index < axis_count; ++index) {
        if (named == nullptr || !CheckAxisBounds(rank, named[index])) return ge::GRAPH_FAILED;
        reduced.insert(named[index] < 0 ? named[index] + rank : named[index]);
    }
    gert::Shape left;
    for (int64_t axis = 0; axis < rank; ++axis) {
        if (reduced.count(axis) == 0) left.AppendDim(input->GetDim(static_cast<size_t>(axis)));
        else if (keep_dims) left.AppendDim(1);
    }
    *output = left;
    return ge::GRAPH_SUCCESS;
}

inline ge::graphStatus InferShape4Reduce(gert::InferShapeContext *context) {
    const gert::Shape *input = context->GetInputShape(0);
    const gert::Tensor *axes = context->GetInputTensor(1);
    gert::Shape *output = context->GetOutputShape(0);
    const bool *keep_dims = context->GetAttrs() == nullptr ? nullptr : context->GetAttrs()->GetAttrPointer<bool>(0);
    if (input == nullptr || axes == nullptr || output == nullptr || keep_dims == nullptr) return ge::GRAPH_FAILED;
    const int32_t count = static_cast<int32_t>(axes->GetShapeSize());
    if (axes->GetDataType() == ge::DT_INT32) return ReduceDims<int32_t>(input, axes, count, *keep_dims, output);
    if (axes->GetDataType() == ge::DT_INT64) return ReduceDims<int64_t>(input, axes, count, *keep_dims, output);
    return ge::GRAPH_FAILED;
}

}  // namespace Base
}  // namespace Ops
