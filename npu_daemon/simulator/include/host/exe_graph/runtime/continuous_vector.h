// gert::ContinuousVector: a list attribute, its header directly followed by its elements.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gert {

class ContinuousVector {
 public:
    ContinuousVector(size_t size, size_t capacity) : size_(size), capacity_(capacity) {}

    size_t GetSize() const { return size_; }
    size_t GetCapacity() const { return capacity_; }
    const void *GetData() const { return this + 1; }
    void *MutableData() { return this + 1; }

 private:
    size_t size_;
    size_t capacity_;
};

template <class T>
class TypedContinuousVector : public ContinuousVector {
 public:
    using ContinuousVector::ContinuousVector;

    const T *GetData() const { return static_cast<const T *>(ContinuousVector::GetData()); }
    T *MutableData() { return static_cast<T *>(ContinuousVector::MutableData()); }
};

// A list of lists of whole numbers: GetSize() lists, each reached through Get(i).
class ContinuousVectorVector {
 public:
    explicit ContinuousVectorVector(size_t size) : size_(size) {}

    size_t GetSize() const { return size_; }
    const ContinuousVector *Get(size_t index) const {
        return index < size_ ? reinterpret_cast<const ContinuousVector *>(base() + offsets()[index]) : nullptr;
    }

 private:
    const uint8_t *base() const { return reinterpret_cast<const uint8_t *>(this); }
    const size_t *offsets() const { return reinterpret_cast<const size_t *>(this + 1); }

    size_t size_;
};

}  // namespace gert
