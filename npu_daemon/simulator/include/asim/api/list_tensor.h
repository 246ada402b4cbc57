// ListTensorDesc and TensorDesc: access to the tensors of a dynamic input or output.
#pragma once
#include "asim/api/tensor.h"
#include "asim/machine/list_descriptor.h"

namespace AscendC {

template <typename T>
class TensorDesc {
public:
    void SetShapeAddr(uint64_t *shape) { shape_ = shape; }
    uint64_t GetDim() const { return rank_; }
    uint64_t GetIndex() const { return index_; }
    uint64_t GetShape(uint32_t axis) const { return shape_[axis]; }
    T *GetDataPtr() const { return data_; }

    GlobalTensor<T> GetDataObj() const {
        uint64_t size_elems = 1;
        for (uint32_t axis = 0; axis < rank_; ++axis) {
            size_elems *= shape_[axis];
        }
        GlobalTensor<T> tensor;
        tensor.SetGlobalBuffer(data_, size_elems);
        return tensor;
    }

private:
    friend class ListTensorDesc;

    uint64_t *shape_ = nullptr;
    T *data_ = nullptr;
    uint32_t rank_ = 0;
    uint32_t index_ = 0;
};

class ListTensorDesc {
public:
    ListTensorDesc() = default;
    ListTensorDesc(void *block, uint32_t = 0xffffffff, uint32_t = 0xffffffff) { Init(block); }

    // The lengths that upstream takes too serve only checks that every access here makes anyway.
    void Init(void *block, uint32_t = 0xffffffff, uint32_t = 0xffffffff) { asim::read_list_descriptor(block, &list_); }

    template <typename T>
    void GetDesc(TensorDesc<T> &desc, uint32_t index) const {
        asim::read_list_shape(list_, index, desc.shape_);
        desc.data_ = GetDataPtr<T>(index);
        desc.rank_ = list_.rank;
        desc.index_ = index;
    }
    template <typename T>
    T *GetDataPtr(uint32_t index) const {
        return static_cast<T *>(asim::list_data(list_, index));
    }
    uint32_t GetSize() const { return asim::list_size(list_); }

private:
    asim::ListDescriptor list_;
};

}  // namespace AscendC
