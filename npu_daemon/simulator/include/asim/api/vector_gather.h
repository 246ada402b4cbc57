// Gather, Gatherb, GatherMask, Brcb and Copy: data movement inside the unified buffer.
#pragma once
#include "asim/api/mask.h"
#include "asim/api/tensor.h"
#include "asim/machine/refusal.h"
#include "asim/machine/registers.h"
#include "asim/semantics/gather.h"

namespace AscendC {

struct GatherRepeatParams {
    GatherRepeatParams() = default;
    GatherRepeatParams(uint8_t dst_block, uint8_t dst_repeat) : dstRepStride(dst_repeat), dstBlkStride(dst_block) {}

    uint32_t blockNumber = DEFAULT_BLK_NUM;
    uint16_t dstRepStride = DEFAULT_REPEAT_STRIDE;
    uint8_t dstBlkStride = DEFAULT_BLK_STRIDE;
};

struct GatherMaskParams {
    GatherMaskParams() = default;
    GatherMaskParams(uint8_t src_block, uint16_t repeats, uint16_t src_repeat, uint8_t pattern_repeat)
        : src0BlockStride(src_block), repeatTimes(repeats), src0RepeatStride(src_repeat), src1RepeatStride(pattern_repeat) {}

    uint8_t src0BlockStride = DEFAULT_BLK_STRIDE;
    uint16_t repeatTimes = 0;
    uint16_t src0RepeatStride = DEFAULT_REPEAT_STRIDE;
    uint8_t src1RepeatStride = DEFAULT_REPEAT_STRIDE;
};

struct BrcbRepeatParams {
    BrcbRepeatParams() = default;
    BrcbRepeatParams(uint16_t dst_block, uint16_t dst_repeat) : dstRepStride(dst_repeat), dstBlkStride(dst_block) {}

    uint32_t blockNumber = DEFAULT_BLK_NUM;
    uint16_t dstRepStride = DEFAULT_REPEAT_STRIDE;
    uint16_t dstBlkStride = DEFAULT_BLK_STRIDE;
};

struct CopyRepeatParams {
    CopyRepeatParams() = default;
    CopyRepeatParams(uint16_t dst_block, uint16_t src_block, uint16_t dst_repeat, uint16_t src_repeat)
        : dstStride(dst_block), srcStride(src_block), dstRepeatSize(dst_repeat), srcRepeatSize(src_repeat) {}

    uint16_t dstStride = DEFAULT_BLK_STRIDE;
    uint16_t srcStride = DEFAULT_BLK_STRIDE;
    uint16_t dstRepeatSize = DEFAULT_REPEAT_STRIDE;
    uint16_t srcRepeatSize = DEFAULT_REPEAT_STRIDE;
};

enum class GatherMaskMode : uint8_t { VERSION_V1 = 0, VERSION_V2 = 1 };

// The library checks element types in its debug build only; otherwise calls with others compile to no instruction
// (asc-devkit, impl/basic_api/dav_c220), which is a fault where one is reached.
template <typename T>
__aicore__ inline void require_movable() {
    if constexpr (sizeof(T) != 2 && sizeof(T) != 4) asim::refuse(asim::Refusal::NoInstruction, sizeof(T));
}

template <typename T>
__aicore__ inline void Gather(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint32_t> &srcOffset,
                              const uint32_t srcBaseOffset, const uint32_t count) {
    require_movable<T>();
    asim::gather<asim::BitsOf<T>>(asim::linear(dst), src.bytes(), srcOffset.bytes(), srcBaseOffset, asim::counted_shape(count));
}

template <typename T, typename Mask>
__aicore__ inline void Gather(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint32_t> &srcOffset,
                              const uint32_t srcBaseOffset, const Mask &mask, const uint8_t repeatTime,
                              const uint16_t dstRepStride) {
    require_movable<T>();
    asim::gather<asim::BitsOf<T>>(asim::strided(dst, 1, dstRepStride), src.bytes(), srcOffset.bytes(), srcBaseOffset,
                                  asim::mask_shape<T, true>(mask, repeatTime));
}

template <typename T>
__aicore__ inline void Gatherb(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint32_t> &offset,
                               const uint8_t repeatTime, const GatherRepeatParams &params) {
    require_movable<T>();
    ResetMask();
    const uint32_t block_stride = params.dstBlkStride == 0 ? 1 : params.dstBlkStride;
    asim::gather_blocks<asim::BitsOf<T>>(asim::strided(dst, block_stride, params.dstRepStride), src.bytes(),
                                         offset.bytes(), repeatTime);
}

// In counter mode each repeat takes `mask` elements, else 256 B. The call sets mode and mask for itself: afterwards normal
// mode holds (page of GatherMask, constraints), with the mask that it was given.
template <typename Bits, typename T>
__aicore__ inline void gather_pattern(const LocalTensor<T> &dst, const LocalTensor<T> &src, const asim::GatherPattern &pattern,
                                      bool counter_mode, uint32_t mask, const GatherMaskParams &params, uint64_t &kept) {
    kept = asim::gather_mask<Bits>(dst.bytes(), asim::strided(src, params.src0BlockStride, params.src0RepeatStride),
                                   pattern, counter_mode ? mask : asim::kRepeatBytes / sizeof(Bits), params.repeatTimes);
    asim::set_counter_mode(false);
    asim::keep_mask(mask, 0);
}

template <typename T, typename U, GatherMaskMode mode = GatherMaskMode::VERSION_V1>
__aicore__ inline void GatherMask(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<U> &src1Pattern,
                                  const bool reduceMode, const uint32_t mask, const GatherMaskParams &params,
                                  uint64_t &rsvdCnt) {
    static_assert(asim::contains<U, asim::TypeList<uint16_t, uint32_t>>::value, "the pattern of GatherMask is uint16_t or uint32_t");
    gather_pattern<U>(dst, src0, {0, src1Pattern.bytes(), params.src1RepeatStride}, reduceMode, mask, params, rsvdCnt);
}

template <typename T, GatherMaskMode mode = GatherMaskMode::VERSION_V1>
__aicore__ inline void GatherMask(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const uint8_t src1Pattern,
                                  const bool reduceMode, const uint32_t mask, const GatherMaskParams &params,
                                  uint64_t &rsvdCnt) {
    gather_pattern<asim::BitsOf<T>>(dst, src0, {src1Pattern, nullptr, 0}, reduceMode, mask, params, rsvdCnt);
}

__aicore__ inline int64_t GetGatherMaskRemainCount() { return static_cast<int64_t>(asim::gathered_count()); }

template <typename T>
__aicore__ inline void Brcb(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint8_t repeatTime,
                            const BrcbRepeatParams &params) {
    require_movable<T>();
    ResetMask();
    asim::broadcast_blocks<asim::BitsOf<T>>(asim::strided(dst, params.dstBlkStride, params.dstRepStride), src.bytes(),
                                            repeatTime);
}

// In counter mode the mask is the number of elements of each repeat, whose blocks may be more than eight, and repeats take
// effect (page of Copy, constraints).
template <typename T>
__aicore__ inline void copy_counted(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint32_t elements,
                                    const uint8_t repeats, const CopyRepeatParams &params) {
    constexpr uint32_t kBlocks = asim::kRepeatBytes / asim::kUbBlockBytes;
    const asim::Lanes to = asim::strided(dst, params.dstStride, params.dstRepeatSize);
    const asim::Lanes from = asim::strided(src, params.srcStride, params.srcRepeatSize);
    if (elements <= asim::kRepeatBytes / sizeof(T)) {
        asim::copy_lanes<asim::BitsOf<T>>(to, from, asim::Shape::leading(elements, repeats));
        return;
    }
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        const uint32_t to_bytes = repeat * to.repeat_stride * asim::kUbBlockBytes;
        const uint32_t from_bytes = repeat * from.repeat_stride * asim::kUbBlockBytes;
        asim::copy_lanes<asim::BitsOf<T>>({to.base + to_bytes, to.block_stride, kBlocks * to.block_stride},
                                          {from.base + from_bytes, from.block_stride, kBlocks * from.block_stride},
                                          asim::Shape::counter(elements));
    }
}

template <typename T, bool isSetMask = true, typename Mask>
__aicore__ inline void Copy(const LocalTensor<T> &dst, const LocalTensor<T> &src, const Mask &mask, const uint8_t repeatTime,
                            const CopyRepeatParams &params) {
    require_movable<T>();
    const asim::Shape shape = asim::mask_shape<T, isSetMask>(mask, repeatTime);
    if (shape.counted) return copy_counted(dst, src, shape.count, repeatTime, params);
    asim::copy_lanes<asim::BitsOf<T>>(asim::strided(dst, params.dstStride, params.dstRepeatSize),
                                      asim::strided(src, params.srcStride, params.srcRepeatSize), shape);
}

}  // namespace AscendC
