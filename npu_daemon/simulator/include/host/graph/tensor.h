// ge::Shape, and tensors as graph-level functions take them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "graph/types.h"

namespace ge {

class Shape {
 public:
    Shape() = default;
    explicit Shape(std::vector<int64_t> extents) : extents_(std::move(extents)) {}

    size_t GetDimNum() const { return extents_.size(); }
    int64_t GetDim(size_t index) const { return index < extents_.size() ? extents_[index] : 0; }
    std::vector<int64_t> GetDims() const { return extents_; }
    // Number of elements; -1 when an extent is unknown, 0 without extents.
    int64_t GetShapeSize() const {
        int64_t elements = extents_.empty() ? 0 : 1;
        for (const int64_t extent : extents_) {
            if (extent < 0) return -1;
            elements *= extent;
        }
        return elements;
    }

 private:
    std::vector<int64_t> extents_;
};

// What an Operator holds: nothing here, see graph/operator.h.
class TensorDesc {
 public:
    Shape GetShape() const { return {}; }
    DataType GetDataType() const { return DT_UNDEFINED; }
    Format GetFormat() const { return FORMAT_ND; }
};

class Tensor {
 public:
    const uint8_t *GetData() const { return nullptr; }
    size_t GetSize() const { return 0; }
    TensorDesc GetTensorDesc() const { return {}; }
};

}  // namespace ge
