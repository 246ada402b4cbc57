// Memory of a core without a TPipe: tensors one after another from the start of a memory on.
#pragma once
#include "asim/api/tensor.h"

namespace AscendC {

enum class Hardware : uint8_t { GM, UB, L1, L0A, L0B, L0C, BIAS, FIXBUF, MAX };

// Use beyond the end of the memory is found when the tensor is used.
template <Hardware memory = Hardware::UB>
class LocalMemAllocator {
public:
    template <typename T, uint32_t size_elems>
    __aicore__ inline LocalTensor<T> Alloc() { return take<T>(kPosition, size_elems); }
    template <typename T>
    __aicore__ inline LocalTensor<T> Alloc(uint32_t size_elems) { return take<T>(kPosition, size_elems); }
    template <TPosition position, typename T, uint32_t size_elems>
    __aicore__ inline LocalTensor<T> Alloc() { return take<T>(position, size_elems); }
    template <TPosition position, typename T>
    __aicore__ inline LocalTensor<T> Alloc(uint32_t size_elems) { return take<T>(position, size_elems); }

    __aicore__ inline uint32_t GetCurAddr() const { return next_; }

private:
    static constexpr TPosition kPosition = memory == Hardware::L1     ? TPosition::A1
                                           : memory == Hardware::L0A  ? TPosition::A2
                                           : memory == Hardware::L0B  ? TPosition::B2
                                           : memory == Hardware::L0C  ? TPosition::CO1
                                           : memory == Hardware::BIAS ? TPosition::C2
                                                                      : TPosition::VECCALC;

    template <typename T>
    LocalTensor<T> take(TPosition position, uint32_t size_elems) {
        const LocalTensor<T> tensor(position, next_, size_elems);
        const uint32_t bytes = size_elems * static_cast<uint32_t>(sizeof(T));
        next_ += (bytes + asim::kUbBlockBytes - 1) / asim::kUbBlockBytes * asim::kUbBlockBytes;
        return tensor;
    }

    uint32_t next_ = 0;
};

}  // namespace AscendC
