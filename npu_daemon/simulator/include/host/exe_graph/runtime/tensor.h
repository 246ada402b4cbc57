// gert::Tensor: an input as host code sees it; data only for inputs declared as value dependent.
#pragma once

#include "exe_graph/runtime/storage_format.h"
#include "exe_graph/runtime/storage_shape.h"

namespace gert {

class Tensor {
 public:
    Tensor() = default;
    Tensor(const StorageShape &shape, const StorageFormat &format, ge::DataType type, void *data = nullptr)
        : shape_(shape), format_(format), type_(type), data_(data) {}

    int64_t GetShapeSize() const { return shape_.GetStorageShape().GetShapeSize(); }
    size_t GetSize() const {
        const int64_t bytes = ge::GetSizeInBytes(GetShapeSize(), type_);
        return bytes < 0 ? 0 : static_cast<size_t>(bytes);
    }
    const StorageShape &GetShape() const { return shape_; }
    StorageShape &MutableShape() { return shape_; }
    const Shape &GetStorageShape() const { return shape_.GetStorageShape(); }
    const Shape &GetOriginShape() const { return shape_.GetOriginShape(); }
    ge::DataType GetDataType() const { return type_; }
    const StorageFormat &GetFormat() const { return format_; }
    ge::Format GetStorageFormat() const { return format_.GetStorageFormat(); }
    ge::Format GetOriginFormat() const { return format_.GetOriginFormat(); }

    // Values on the host, or nullptr when they are not known to the tiling function.
    template <class T>
    const T *GetData() const {
        return static_cast<const T *>(data_);
    }
    template <class T>
    T *GetData() {
        return static_cast<T *>(data_);
    }
    const void *GetAddr() const { return data_; }

 private:
    StorageShape shape_;
    StorageFormat format_;
    ge::DataType type_ = ge::DT_UNDEFINED;
    void *data_ = nullptr;
};

}  // namespace gert
