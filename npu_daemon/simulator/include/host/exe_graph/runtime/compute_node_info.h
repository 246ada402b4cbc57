// Static facts of the operator call: its parameters, how many tensors each has, and its attributes.
#pragma once

#include <string>
#include <vector>

#include "exe_graph/runtime/runtime_attrs.h"
#include "exe_graph/runtime/storage_format.h"

namespace gert {

// Element type and layout of one input or output.
class CompileTimeTensorDesc {
 public:
    CompileTimeTensorDesc() = default;
    CompileTimeTensorDesc(ge::DataType type, const StorageFormat &format) : type_(type), format_(format) {}

    ge::DataType GetDataType() const { return type_; }
    const StorageFormat &GetFormat() const { return format_; }
    ge::Format GetStorageFormat() const { return format_.GetStorageFormat(); }
    ge::Format GetOriginFormat() const { return format_.GetOriginFormat(); }

 private:
    ge::DataType type_ = ge::DT_UNDEFINED;
    StorageFormat format_;
};

// Where the tensors of one parameter are among all tensors: none for an absent optional, several for a list.
class AnchorInstanceInfo {
 public:
    AnchorInstanceInfo() = default;
    AnchorInstanceInfo(size_t start, size_t count) : start_(start), count_(count) {}

    size_t GetInstanceStart() const { return start_; }
    size_t GetInstanceNum() const { return count_; }

 private:
    size_t start_ = 0;
    size_t count_ = 0;
};

class ComputeNodeInfo {
 public:
    std::string name;
    std::string type;
    std::vector<AnchorInstanceInfo> input_parameters;
    std::vector<AnchorInstanceInfo> output_parameters;
    std::vector<CompileTimeTensorDesc> input_descs;
    std::vector<CompileTimeTensorDesc> output_descs;
    RuntimeAttrs attributes;

    const char *GetNodeName() const { return name.c_str(); }
    const char *GetNodeType() const { return type.c_str(); }
    size_t GetIrInputsNum() const { return input_parameters.size(); }
    size_t GetIrOutputsNum() const { return output_parameters.size(); }
    size_t GetInputsNum() const { return input_descs.size(); }
    size_t GetOutputsNum() const { return output_descs.size(); }
    const AnchorInstanceInfo *GetInputInstanceInfo(size_t parameter) const { return at(input_parameters, parameter); }
    const AnchorInstanceInfo *GetOutputInstanceInfo(size_t parameter) const {
        return at(output_parameters, parameter);
    }
    const CompileTimeTensorDesc *GetInputTdInfo(size_t index) const { return at(input_descs, index); }
    const CompileTimeTensorDesc *GetOutputTdInfo(size_t index) const { return at(output_descs, index); }
    const RuntimeAttrs *GetAttrs() const { return &attributes; }

 private:
    template <class T>
    static const T *at(const std::vector<T> &items, size_t index) {
        return index < items.size() ? &items[index] : nullptr;
    }
};

}  // namespace gert
