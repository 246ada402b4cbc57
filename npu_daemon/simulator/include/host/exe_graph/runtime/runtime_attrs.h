// gert::RuntimeAttrs: attribute values of the call, in the order of the operator definition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "exe_graph/runtime/continuous_vector.h"

namespace gert {

class RuntimeAttrs {
 public:
    void append(int64_t value) { append_bytes(&value, sizeof(value)); }
    void append(float value) { append_bytes(&value, sizeof(value)); }
    void append(bool value) { append_bytes(&value, sizeof(value)); }
    void append(const std::string &value) { append_bytes(value.c_str(), value.size() + 1); }
    void append(const std::vector<int64_t> &values) { append_list(values.size(), values.data(), sizeof(int64_t)); }
    void append(const std::vector<float> &values) { append_list(values.size(), values.data(), sizeof(float)); }
    void append(const std::vector<uint8_t> &flags) { append_list(flags.size(), flags.data(), sizeof(uint8_t)); }
    void append(const std::vector<std::vector<int64_t>> &lists);

    size_t GetAttrNum() const { return values_.size(); }

    // Value of attribute `index` seen as a T, or nullptr when there is no such attribute.
    template <class T>
    const T *GetAttrPointer(size_t index) const {
        return index < values_.size() ? reinterpret_cast<const T *>(values_[index]->data()) : nullptr;
    }
    const int64_t *GetInt(size_t index) const { return GetAttrPointer<int64_t>(index); }
    const float *GetFloat(size_t index) const { return GetAttrPointer<float>(index); }
    const bool *GetBool(size_t index) const { return GetAttrPointer<bool>(index); }
    const char *GetStr(size_t index) const { return GetAttrPointer<char>(index); }
    const TypedContinuousVector<int64_t> *GetListInt(size_t index) const {
        return GetAttrPointer<TypedContinuousVector<int64_t>>(index);
    }
    const TypedContinuousVector<float> *GetListFloat(size_t index) const {
        return GetAttrPointer<TypedContinuousVector<float>>(index);
    }
    const ContinuousVectorVector *GetListListInt(size_t index) const {
        return GetAttrPointer<ContinuousVectorVector>(index);
    }

 private:
    void append_bytes(const void *bytes, size_t size);
    void append_list(size_t count, const void *elements, size_t element_bytes);

    std::vector<std::shared_ptr<std::vector<uint8_t>>> values_;
};

}  // namespace gert
