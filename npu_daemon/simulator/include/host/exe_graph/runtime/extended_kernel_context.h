// gert::ExtendedKernelContext: what every context of host code can tell about the operator call.
#pragma once

#include "asim/host/call.h"

namespace gert {

class ExtendedKernelContext {
 public:
    explicit ExtendedKernelContext(asim::host::Call &call) : call_(call) {}

    const char *GetNodeName() const { return call_.node.GetNodeName(); }
    const char *GetNodeType() const { return call_.node.GetNodeType(); }
    const ComputeNodeInfo *GetComputeNodeInfo() const { return &call_.node; }
    const RuntimeAttrs *GetAttrs() const { return call_.node.GetAttrs(); }
    size_t GetComputeNodeInputNum() const { return call_.node.GetInputsNum(); }
    size_t GetComputeNodeOutputNum() const { return call_.node.GetOutputsNum(); }
    const AnchorInstanceInfo *GetIrInputInstanceInfo(size_t parameter) const {
        return call_.node.GetInputInstanceInfo(parameter);
    }
    const AnchorInstanceInfo *GetIrOutputInstanceInfo(size_t parameter) const {
        return call_.node.GetOutputInstanceInfo(parameter);
    }

    // `index` counts tensors, `parameter` counts parameters of the operator definition.
    const CompileTimeTensorDesc *GetInputDesc(size_t index) const { return call_.node.GetInputTdInfo(index); }
    const CompileTimeTensorDesc *GetOutputDesc(size_t index) const { return call_.node.GetOutputTdInfo(index); }
    const CompileTimeTensorDesc *GetRequiredInputDesc(size_t parameter) const {
        return GetDynamicInputDesc(parameter, 0);
    }
    const CompileTimeTensorDesc *GetOptionalInputDesc(size_t parameter) const {
        return GetDynamicInputDesc(parameter, 0);
    }
    const CompileTimeTensorDesc *GetDynamicInputDesc(size_t parameter, size_t relative) const {
        return GetInputDesc(instance_index(GetIrInputInstanceInfo(parameter), relative));
    }
    const CompileTimeTensorDesc *GetRequiredOutputDesc(size_t parameter) const {
        return GetDynamicOutputDesc(parameter, 0);
    }
    const CompileTimeTensorDesc *GetDynamicOutputDesc(size_t parameter, size_t relative) const {
        return GetOutputDesc(instance_index(GetIrOutputInstanceInfo(parameter), relative));
    }

    const Tensor *GetInputTensor(size_t index) const { return at(call_.inputs, index); }
    const Tensor *GetRequiredInputTensor(size_t parameter) const { return GetDynamicInputTensor(parameter, 0); }
    const Tensor *GetOptionalInputTensor(size_t parameter) const { return GetDynamicInputTensor(parameter, 0); }
    const Tensor *GetDynamicInputTensor(size_t parameter, size_t relative) const {
        return GetInputTensor(instance_index(GetIrInputInstanceInfo(parameter), relative));
    }

 protected:
    static constexpr size_t kNoInstance = static_cast<size_t>(-1);

    static size_t instance_index(const AnchorInstanceInfo *parameter, size_t relative) {
        const bool present = parameter != nullptr && relative < parameter->GetInstanceNum();
        return present ? parameter->GetInstanceStart() + relative : kNoInstance;
    }
    template <class T>
    static const T *at(const std::vector<T> &items, size_t index) {
        return index < items.size() ? &items[index] : nullptr;
    }
    static const StorageShape *shape_of(const Tensor *tensor) {
        return tensor == nullptr ? nullptr : &tensor->GetShape();
    }

    asim::host::Call &call_;
};

}  // namespace gert
