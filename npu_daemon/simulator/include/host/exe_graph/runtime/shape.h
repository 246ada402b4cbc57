// gert::Shape: extents of a tensor, at most 25 of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace gert {

class Shape {
 public:
    static constexpr size_t kMaxDimNum = 25;
    static constexpr int64_t kInvalidDimValue = std::numeric_limits<int64_t>::min();

    Shape() = default;
    Shape(std::initializer_list<int64_t> extents) {
        for (const int64_t extent : extents) AppendDim(extent);
    }

    bool operator==(const Shape &other) const {
        if (rank_ != other.rank_) return false;
        for (size_t i = 0; i < rank_; ++i) {
            if (extents_[i] != other.extents_[i]) return false;
        }
        return true;
    }
    bool operator!=(const Shape &other) const { return !(*this == other); }

    // Number of elements: 1 for a scalar, negative when an extent is unknown.
    int64_t GetShapeSize() const {
        int64_t elements = 1;
        for (size_t i = 0; i < rank_; ++i) {
            if (extents_[i] < 0) return extents_[i];
            elements *= extents_[i];
        }
        return elements;
    }

    bool IsScalar() const { return rank_ == 0; }
    void SetScalar() { rank_ = 0; }
    size_t GetDimNum() const { return rank_; }
    void SetDimNum(size_t rank) { rank_ = rank < kMaxDimNum ? rank : kMaxDimNum; }

    // Extent of dimension `index`, or kInvalidDimValue outside the first 25.
    int64_t GetDim(size_t index) const { return index < kMaxDimNum ? extents_[index] : kInvalidDimValue; }
    int64_t operator[](size_t index) const { return GetDim(index); }
    int64_t &operator[](size_t index) { return extents_[index < kMaxDimNum ? index : kMaxDimNum - 1]; }
    void SetDim(size_t index, int64_t extent) {
        if (index < kMaxDimNum) extents_[index] = extent;
    }
    Shape &AppendDim(int64_t extent) {
        if (rank_ < kMaxDimNum) extents_[rank_++] = extent;
        return *this;
    }

 private:
    size_t rank_ = 0;
    int64_t extents_[kMaxDimNum] = {};
};

}  // namespace gert
