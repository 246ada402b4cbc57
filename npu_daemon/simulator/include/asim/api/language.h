// The Ascend C dialect: qualifiers, entry points, element type codes and compile-time switches.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "asim/machine/core.h"
#include "asim/machine/task_type.h"
#include "asim/machine/tiling_data.h"
#include "asim/numeric/types.h"

#ifdef ASIM_AICORE_SECTION      // set to tell functions of kernels from those of the host
#define ASIM_AICORE __attribute__((section(ASIM_AICORE_SECTION)))
#else
#define ASIM_AICORE
#endif
#define __aicore__ ASIM_AICORE
#define __aicore ASIM_AICORE        // in the place of [aicore], as long as that (kernel_build.py)
#ifndef ASIM_KEEP_QUALIFIERS    // set to read a program for what its kernels say about themselves
#define __global__
#define __vector__ ASIM_AICORE
#define __cube__ ASIM_AICORE
#define __mix__(...) ASIM_AICORE
#define KERNEL_TASK_TYPE(key, type) ASIM_NOTE_TASK_TYPE(key, false, type)
#define KERNEL_TASK_TYPE_DEFAULT(type) ASIM_NOTE_TASK_TYPE(0, true, type)
#endif
#define __gm__
#define __tiling_data_ptr__
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __kfc_workspace__
#define __forceinline__ inline __attribute__((always_inline))
#define __inout_pipe__(...)
#define GM_ADDR uint8_t *
#define ASSERT(...)
#define TILING_KEY_IS(key) (AscendC::is_tiling_key(key))
#define ASCEND_IS_AIV constexpr(AscendC::g_coreType == AscendC::AIV)
#define ASCEND_IS_AIC constexpr(AscendC::g_coreType == AscendC::AIC)

// Element type codes, as the graph engine numbers them; preprocessor constants because kernels use them in #if.
#define DT_FLOAT 0
#define DT_FLOAT16 1
#define DT_INT8 2
#define DT_INT32 3
#define DT_UINT8 4
#define DT_INT16 6
#define DT_UINT16 7
#define DT_UINT32 8
#define DT_INT64 9
#define DT_UINT64 10
#define DT_DOUBLE 11
#define DT_BOOL 12
#define DT_BF16 27
#define DT_INT4 29
#define FORMAT_NCHW 0
#define FORMAT_NHWC 1
#define FORMAT_ND 2
#define FORMAT_NC1HWC0 3
#define FORMAT_FRACTAL_Z 4
#define FORMAT_FRACTAL_NZ 29

namespace AscendC {

using ::int4b_t;

enum class TPosition : uint8_t {
    GM, A1, A2, B1, B2, C1, C2, CO1, CO2, VECIN, VECOUT, VECCALC, LCM = VECCALC, SPM, SHM = SPM, TSCM, C2PIPE2GM, MAX
};
using QuePosition = TPosition;

enum class CacheMode : uint8_t { CACHE_MODE_DISABLE = 0, CACHE_MODE_NORMAL = 1, CACHE_MODE_LAST = 2, CACHE_MODE_PERSISTENT = 4 };
enum class CacheRwMode : uint8_t { READ = 1, WRITE = 2, RW = 3 };
enum class CacheLine : uint64_t { SINGLE_CACHE_LINE = 0, ENTIRE_DATA_CACHE };
enum class DcciDst : uint64_t { CACHELINE_ALL = 0, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };

constexpr int AIC = 1;
constexpr int AIV = 2;
#ifdef __DAV_C220_CUBE__
constexpr int g_coreType = AIC;
#else
constexpr int g_coreType = AIV;
#endif
constexpr uint32_t DEFAULT_BLK_NUM = 8;
constexpr uint8_t DEFAULT_BLK_STRIDE = 1;
constexpr uint8_t DEFAULT_REPEAT_STRIDE = 8;

template <bool Value>
struct BoolInst {
    static constexpr bool value = Value;
};
using TrueType = BoolInst<true>;
using FalseType = BoolInst<false>;

template <typename T, typename U>
struct IsSameType : BoolInst<std::is_same_v<T, U>> {};

template <bool Condition, typename Then, typename Else>
struct Conditional {
    using type = std::conditional_t<Condition, Then, Else>;
};

// What macros stand for, which kernels use in functions of their own.
__aicore__ inline bool is_tiling_key(uint64_t key) { return asim::tiling_key_is(key); }
template <typename T>
__aicore__ inline void copy_tiling_data(T *destination, const uint8_t *source) {
    asim::copy_tiling_bytes(destination, source, sizeof(T));
}

__aicore__ inline int64_t GetBlockIdx() { return asim::block_index(); }
__aicore__ inline int64_t GetBlockNum() { return asim::block_count(); }
__aicore__ inline int64_t GetSubBlockIdx() { return asim::sub_block_index(); }
__aicore__ inline int64_t GetSubBlockNum() { return asim::sub_block_count(); }
__aicore__ inline int64_t GetTaskRation() { return asim::sub_block_count(); }
__aicore__ inline int64_t GetTaskRatio() { return asim::sub_block_count(); }

template <typename T, typename U>
__aicore__ constexpr inline auto DivCeil(T value, U divisor) {
    return (value + divisor - 1) / divisor;
}
template <typename T, typename U>
__aicore__ constexpr inline auto AlignUp(T value, U unit) {
    return (value + unit - 1) / unit * unit;
}
template <typename T, typename U>
__aicore__ constexpr inline auto CeilDivision(T value, U divisor) {
    return (value + divisor - 1) / divisor;
}

// Where flags between cores lie: the runtime's affair here, which knows them by their numbers.
__aicore__ inline void SetSyncBaseAddr(uint64_t) {}

__aicore__ inline float ToFloat(const bfloat16_t &value) { return static_cast<float>(value); }
__aicore__ inline bfloat16_t ToBfloat16(const float &value) { return bfloat16_t(value); }

}  // namespace AscendC

// Builtins of the device compiler. Functions of a kernel with the same names are the better match, as they have no further arguments.
template <typename T, typename U, typename... None>
__aicore__ constexpr inline auto min(const T &first, const U &second, None...) {
    static_assert(sizeof...(None) == 0, "min takes two arguments");
    return second < first ? second : first;
}
template <typename T, typename U, typename... None>
__aicore__ constexpr inline auto max(const T &first, const U &second, None...) {
    static_assert(sizeof...(None) == 0, "max takes two arguments");
    return first < second ? second : first;
}

#define likely(condition) __builtin_expect(static_cast<bool>(condition), 1)
#define unlikely(condition) __builtin_expect(static_cast<bool>(condition), 0)

using AscendC::g_coreType;
