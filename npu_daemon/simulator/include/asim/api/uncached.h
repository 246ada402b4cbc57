// Scalar accesses to global memory past the data cache, and the barrier that waits for them.
#pragma once
#include "asim/api/tensor.h"

namespace AscendC {

enum class MemDsbT : uint8_t { ALL = 0, DDR, UB, SEQ };

// Accesses of the scalar unit take effect in order here, so there is nothing to wait for.
template <MemDsbT memory>
__aicore__ inline void DataSyncBarrier() {}

template <typename T>
__aicore__ inline T ReadGmByPassDCache(__gm__ T *addr) {
    static_assert(std::is_integral_v<T>, "ReadGmByPassDCache takes whole numbers");
    return asim::element_of_bits<T>(asim::load_uncached(addr, sizeof(T)));
}

template <typename T>
__aicore__ inline void WriteGmByPassDCache(__gm__ T *addr, T value) {
    static_assert(std::is_integral_v<T>, "WriteGmByPassDCache takes whole numbers");
    asim::store_uncached(addr, asim::bits_of_element(value), sizeof(T));
}

// Where a kernel that is part of a larger one may overlap with its neighbours; a launch of its own has none.
template <pipe_t... pipes>
__aicore__ inline void SetNextTaskStart() {}
template <pipe_t... pipes>
__aicore__ inline void WaitPreTaskEnd() {}

}  // namespace AscendC
