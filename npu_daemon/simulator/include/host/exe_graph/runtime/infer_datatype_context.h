// gert::InferDataTypeContext: element types of inputs and mutable ones of outputs.
#pragma once

#include "exe_graph/runtime/extended_kernel_context.h"

namespace gert {

class InferDataTypeContext : public ExtendedKernelContext {
 public:
    using ExtendedKernelContext::ExtendedKernelContext;

    ge::DataType GetInputDataType(size_t index) const { return type_of(GetInputDesc(index)); }
    ge::DataType GetRequiredInputDataType(size_t parameter) const { return GetDynamicInputDataType(parameter, 0); }
    ge::DataType GetOptionalInputDataType(size_t parameter) const { return GetDynamicInputDataType(parameter, 0); }
    ge::DataType GetDynamicInputDataType(size_t parameter, size_t relative) const {
        return type_of(GetDynamicInputDesc(parameter, relative));
    }
    ge::DataType GetOutputDataType(size_t index) const { return type_of(GetOutputDesc(index)); }
    ge::graphStatus SetOutputDataType(size_t index, ge::DataType type) {
        if (index >= call_.node.output_descs.size()) return ge::GRAPH_FAILED;
        CompileTimeTensorDesc &desc = call_.node.output_descs[index];
        desc = CompileTimeTensorDesc(type, desc.GetFormat());
        return ge::GRAPH_SUCCESS;
    }

 private:
    static ge::DataType type_of(const CompileTimeTensorDesc *desc) {
        return desc == nullptr ? ge::DT_UNDEFINED : desc->GetDataType();
    }
};

}  // namespace gert
