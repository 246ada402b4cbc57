// Library helpers that kernels call although they are not instructions.
#pragma once
#include "asim/api/mask.h"
#include "asim/api/tensor.h"
#include "asim/machine/refusal.h"
#include "asim/unit_sizes.h"

using float16_t = half;

// Checks of a debug build on the device; the simulator has its own.
#define ASSERT_MSG(...)
#define ASCENDC_ASSERT(...)
#define KERNEL_LOG(...)
#ifndef assert
#define assert(...)
#endif

namespace AscendC {

constexpr int32_t MAX_REPEAT_TIMES = 255;   // of one instruction

// Sizes of local memories, as the published header kernel_utils_constants.h has them for architecture 2201.
constexpr int32_t TOTAL_VEC_LOCAL_SIZE = 184 * 1024;    // UB without the last 8 KB, which library calls may use
constexpr uint32_t TOTAL_UB_SIZE = 192 * 1024;
constexpr uint32_t TMP_UB_SIZE = TOTAL_UB_SIZE - TOTAL_VEC_LOCAL_SIZE;
constexpr uint32_t TMP_UB_OFFSET = TOTAL_VEC_LOCAL_SIZE;
constexpr uint32_t TOTAL_L1_SIZE = 512 * 1024 - 128;    // without what messages between cores take
constexpr uint32_t TOTAL_L0A_SIZE = 64 * 1024;
constexpr uint32_t TOTAL_L0B_SIZE = 64 * 1024;
constexpr uint32_t TOTAL_L0C_SIZE = 128 * 1024;

class AscendCUtils {
public:
    template <typename T, bool isSetMask = true>
    static void SetMask(const uint64_t &mask_high, const uint64_t &mask_low) {
        if (isSetMask) SetVectorMask<T>(mask_high, mask_low);
    }
    template <typename T, bool isSetMask = true>
    static void SetMask(int32_t lanes) {
        if (isSetMask) SetVectorMask<T>(lanes);
    }
    template <typename T = float>
    static void SetMaskCount() { AscendC::SetMaskCount(); }
    template <typename T = float>
    static void SetMaskNorm() { AscendC::SetMaskNorm(); }

    // 1 keeps infinities and NaN of half and bfloat16_t, as all results here do; 0 asks for the largest number instead.
    static void SetOverflow(uint64_t ctrlValue) {
        if (ctrlValue != 1) asim::refuse(asim::Refusal::Saturation);
    }

    // Elements of a data block.
    static int32_t GetC0Count(int32_t element_bytes) { return static_cast<int32_t>(asim::kUbBlockBytes) / element_bytes; }
};

__aicore__ constexpr inline uint32_t GetDataBlockSizeInBytes() { return asim::kUbBlockBytes; }

}  // namespace AscendC

__aicore__ inline int64_t get_block_idx() { return asim::block_index(); }
