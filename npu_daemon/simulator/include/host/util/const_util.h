// Values of inputs that a tiling function may look into.
#pragma once
#include "log/log.h"

namespace Ops {
namespace Base {

// Calls `take` with each value of a whole-number tensor; false for other types and for values that are not known.
template <class Take>
bool asim_each_value(const gert::Tensor *tensor, Take take) {
    if (tensor == nullptr || tensor->GetAddr() == nullptr) return false;
    const auto each = [&](auto *values) {
        for (int64_t i = 0; i < tensor->GetShapeSize(); ++i) take(values[i]);
        return true;
    };
    switch (tensor->GetDataType()) {
        case ge::DT_INT32: return each(tensor->GetData<int32_t>());
        case ge::DT_INT64: return each(tensor->GetData<int64_t>());
        case ge::DT_UINT32: return each(tensor->GetData<uint32_t>());
        case ge::DT_UINT64: return each(tensor->GetData<uint64_t>());
        default: return false;
    }
}

// The first value of an input as a number.
template <class Context, class Number>
bool GetConstInt(const Context *context, int64_t index, Number &value) {
    bool found = false;
    const auto first = [&](auto each) {
        if (!found) value = static_cast<Number>(each);
        found = true;
    };
    return asim_each_value(context->GetInputTensor(static_cast<size_t>(index)), first) && found;
}

// All values of an input as the extents of a shape.
template <class Context>
bool GetConstIntToShape(const Context *context, int64_t index, gert::Shape &shape) {
    shape.SetDimNum(0);
    const auto append = [&](auto each) { shape.AppendDim(static_cast<int64_t>(each)); };
    return asim_each_value(context->GetInputTensor(static_cast<size_t>(index)), append);
}

}  // namespace Base
}  // namespace Ops
