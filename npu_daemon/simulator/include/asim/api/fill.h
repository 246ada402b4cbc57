// InitGlobalMemory, InitOutput and Fill: one value written to a run of global memory.
#pragma once
#include "asim/api/data_copy.h"
#include "asim/api/math.h"
#include "asim/semantics/fill.h"

namespace AscendC {

template <typename T>
__aicore__ inline void Fill(const GlobalTensor<T> &gmWorkspaceAddr, const uint64_t size, const T value) {
    asim::fill_gm(gmWorkspaceAddr.bytes(), size * sizeof(T), asim::bits_of_element(value), sizeof(T), gmWorkspaceAddr.writes_bypass_l2(),
                  atomic_type<T>());
}

// The value converts to the element type of the tensor.
template <typename T>
struct ElementOf {
    using Type = T;
};

template <typename T>
__aicore__ inline void InitGlobalMemory(GlobalTensor<T> gmWorkspaceAddr, const uint64_t size,
                                        const typename ElementOf<T>::Type value) {
    Fill<T>(gmWorkspaceAddr, size, value);
}

template <typename T>
__aicore__ inline void InitOutput(GlobalTensor<T> gmWorkspaceAddr, uint32_t size, typename ElementOf<T>::Type value = T(0)) {
    Fill<T>(gmWorkspaceAddr, size, value);
}

}  // namespace AscendC
