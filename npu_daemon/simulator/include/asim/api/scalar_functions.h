// Bits of scalars, and calls that begin work early or mark it, which change no result.
#pragma once
#include "asim/api/sync.h"
#include "asim/api/tensor.h"

namespace AscendC {

template <int countValue>
__aicore__ inline int64_t GetBitCount(uint64_t valueIn) {
    static_assert(countValue == 0 || countValue == 1, "GetBitCount counts bits that are 0 or 1");
    return __builtin_popcountll(countValue == 1 ? valueIn : ~valueIn);
}

// The place of the lowest bit of that value, or -1.
template <int countValue>
__aicore__ inline int64_t GetSFFValue(uint64_t valueIn) {
    static_assert(countValue == 0 || countValue == 1, "GetSFFValue looks for a bit that is 0 or 1");
    const uint64_t bits = countValue == 1 ? valueIn : ~valueIn;
    return bits == 0 ? -1 : __builtin_ctzll(bits);
}

__aicore__ inline int64_t CountLeadingZero(uint64_t valueIn) { return valueIn == 0 ? 64 : __builtin_clzll(valueIn); }

// Bits behind the sign that are equal to it, up to the first other one; -1 where there is no other.
__aicore__ inline int64_t CountBitsCntSameAsSignBit(int64_t valueIn) {
    return valueIn == 0 || valueIn == -1 ? -1 : __builtin_clrsbll(valueIn);
}

enum class EngineType : int32_t { AIC = 1, AIV = 2 };

// Calls the function on cores of one kind.
template <EngineType engine, auto funPtr, class... Args>
__aicore__ inline void Async(Args... args) {
    if constexpr (static_cast<int>(engine) == g_coreType) funPtr(args...);
}

// Loads of code and data that are charged here where they are first used.
template <typename T>
__aicore__ inline void DataCachePreload(const GlobalTensor<uint64_t> &, const T) {}
__aicore__ inline void ICachePreLoad(const int64_t) {}
#define PRELOAD(len) AscendC::ICachePreLoad(len)
__aicore__ inline int64_t GetICachePreloadStatus() { return 0; }

// Marks for the profiler of a device.
__aicore__ inline void MetricsProfStart() {}
__aicore__ inline void MetricsProfStop() {}

}  // namespace AscendC

#define TRACE_START(id)
#define TRACE_STOP(id)
__aicore__ inline void asc_prof_start() {}
__aicore__ inline void asc_prof_stop() {}
