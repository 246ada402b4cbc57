// Xor, as the published library composes it (asc-devkit, adv_api/detail/math/xor): (x | y) & ~(x & y).
#pragma once
#include "asim/api/math.h"
#include "asim/api/vector_elementwise.h"
#include "asim/semantics/rows.h"

namespace AscendC {

template <typename T, bool isReuseSource = false>
__aicore__ inline void Xor(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                           const LocalTensor<uint8_t> &sharedTmpBuffer, const uint32_t calCount) {
    static_assert(std::is_integral_v<T> && sizeof(T) == sizeof(uint16_t), "Xor takes int16_t or uint16_t on Atlas A2");
    const LocalTensor<T> either = sharedTmpBuffer.template ReinterpretCast<T>();
    constexpr uint32_t block = asim::kUbBlockBytes;     // elements
    asim::check_scratch(asim::ComposedCall::Xor, scratch_of(sharedTmpBuffer), block * sizeof(T));
    for (const LocalTensor<T> &src : {src0, src1}) {
        asim::check_operands(asim::LibraryContract::Xor, dst.bytes(), uint64_t{calCount} * sizeof(T), src.bytes(), uint64_t{calCount} * sizeof(T));
    }
    const uint32_t step = either.GetSize() / block * block;
    for (uint32_t done = 0; done < calCount; done += step) {
        const auto count = static_cast<int32_t>(calCount - done < step ? calCount - done : step);
        And(dst[done], src0[done], src1[done], count);
        Or(either, src0[done], src1[done], count);
        PipeBarrier<PIPE_V>();
        Not(dst[done], dst[done], count);
        PipeBarrier<PIPE_V>();
        And(dst[done], either, dst[done], count);
        PipeBarrier<PIPE_V>();
    }
}

template <typename T, bool isReuseSource = false>
__aicore__ inline void Xor(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                           const LocalTensor<uint8_t> &sharedTmpBuffer) {
    Xor<T>(dst, src0, src1, sharedTmpBuffer, src0.GetSize());
}

template <typename T, bool isReuseSource = false>
__aicore__ inline void Xor(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,
                           const uint32_t calCount) {
    LocalTensor<uint8_t> scratch;
    PopStackBuffer<uint8_t, TPosition::LCM>(scratch);
    Xor<T>(dst, src0, src1, scratch, calCount);
}

template <typename T, bool isReuseSource = false>
__aicore__ inline void Xor(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1) {
    Xor<T>(dst, src0, src1, src0.GetSize());
}

}  // namespace AscendC
