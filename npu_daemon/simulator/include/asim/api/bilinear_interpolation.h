// BilinearInterpolation: data blocks gathered, multiplied by a number each or by one a repeat, and added up over the horizontal repeats; composed
// of the calls that its page names.
#pragma once
#include "asim/api/library_steps.h"
#include "asim/api/vector_gather.h"

namespace AscendC {

template <typename T, typename Mask>
__aicore__ inline void BilinearInterpolation(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<uint32_t> &src0Offset,
                                             const LocalTensor<T> &src1, Mask mask, uint8_t hRepeat, bool repeatMode, uint16_t dstBlkStride,
                                             uint16_t vROffset, uint8_t vRepeat, const LocalTensor<uint8_t> &sharedTmpBuffer) {
    using namespace composed_calls;
    static_assert(std::is_same_v<T, half>, "BilinearInterpolation takes half");
    constexpr ComposedCall call = ComposedCall::BilinearInterpolation;
    constexpr uint32_t kRepeatElems = asim::kRepeatBytes / sizeof(T), kBlocks = asim::kRepeatBytes / asim::kUbBlockBytes;
    constexpr uint32_t kBlockElems = asim::kUbBlockBytes / sizeof(T);
    asim::check_demand(call, Demand::AboveZero, hRepeat, 0, Quantity::HorizontalRepeats);
    asim::check_demand(call, Demand::AboveZero, vRepeat, 0, Quantity::VerticalRepeats);
    asim::check_demand(call, Demand::Least, vROffset, kRepeatElems, Quantity::VerticalOffset);
    asim::check_demand(call, Demand::Multiple, vROffset, kBlockElems, Quantity::VerticalOffset);
    const uint32_t repeats = uint32_t{hRepeat} * vRepeat, numbers = repeatMode ? repeats * kBlocks : repeats;
    const uint32_t eights = (numbers + kBlocks - 1) / kBlocks;
    asim::check_scratch(call, bytes_of(sharedTmpBuffer), uint64_t{repeats + eights} * asim::kRepeatBytes);
    const LocalTensor<T> gathered = sharedTmpBuffer.template ReinterpretCast<T>(), factors = gathered[repeats * kRepeatElems];
    in_rounds(repeats, MAX_REPEAT_TIMES, [&](uint32_t done, uint32_t number) {
        Gatherb(gathered[done * kRepeatElems], src0, src0Offset[done * kBlocks], static_cast<uint8_t>(number), GatherRepeatParams{1, 8});
    });
    PipeBarrier<PIPE_V>();
    in_rounds(eights, MAX_REPEAT_TIMES, [&](uint32_t done, uint32_t number) {
        Brcb(factors[done * kRepeatElems], src1[done * kBlocks], static_cast<uint8_t>(number), BrcbRepeatParams{1, 8});
    });
    PipeBarrier<PIPE_V>();
    const auto by_block = static_cast<uint8_t>(repeatMode ? 1 : 0), by_repeat = static_cast<uint8_t>(repeatMode ? 8 : 1);
    in_rounds(repeats, MAX_REPEAT_TIMES, [&](uint32_t done, uint32_t number) {
        Mul(gathered[done * kRepeatElems], gathered[done * kRepeatElems], factors[done * (repeatMode ? kRepeatElems : kBlockElems)], mask,
            static_cast<uint8_t>(number), BinaryRepeatParams{1, 1, by_block, 8, 8, by_repeat});
    });
    PipeBarrier<PIPE_V>();
    const auto stride = static_cast<uint8_t>(dstBlkStride);
    for (uint32_t row = 0; row < vRepeat; ++row) {
        const LocalTensor<T> sum = dst[row * vROffset], first = gathered[row * hRepeat * kRepeatElems];
        Muls(sum, first, T(1.0f), mask, 1, UnaryRepeatParams{stride, 1, 8, 8});
        PipeBarrier<PIPE_V>();
        for (uint32_t i = 1; i < hRepeat; ++i) {
            Add(sum, sum, first[i * kRepeatElems], mask, 1, BinaryRepeatParams{stride, stride, 1, 8, 8, 8});
            PipeBarrier<PIPE_V>();
        }
    }
}

}  // namespace AscendC
