// gert::InferShapeContext: inputs and mutable output shapes for shape inference.
#pragma once

#include "exe_graph/runtime/extended_kernel_context.h"

namespace gert {

class InferShapeContext : public ExtendedKernelContext {
 public:
    using ExtendedKernelContext::ExtendedKernelContext;

    const Shape *GetInputShape(size_t index) const { return origin_of(GetInputTensor(index)); }
    const Shape *GetRequiredInputShape(size_t parameter) const { return GetDynamicInputShape(parameter, 0); }
    const Shape *GetOptionalInputShape(size_t parameter) const { return GetDynamicInputShape(parameter, 0); }
    const Shape *GetDynamicInputShape(size_t parameter, size_t relative) const {
        return origin_of(GetDynamicInputTensor(parameter, relative));
    }
    Shape *GetOutputShape(size_t index) {
        return index < call_.outputs.size() ? &call_.outputs[index].MutableShape().MutableOriginShape() : nullptr;
    }

 private:
    static const Shape *origin_of(const Tensor *tensor) {
        return tensor == nullptr ? nullptr : &tensor->GetOriginShape();
    }
};

}  // namespace gert
