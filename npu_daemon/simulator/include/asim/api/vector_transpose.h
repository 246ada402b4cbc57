// TransDataTo5HD and Transpose.
#pragma once
#include "asim/api/tensor.h"
#include "asim/semantics/transpose.h"

namespace AscendC {

constexpr int32_t NCHW_CONV_ADDR_LIST_SIZE = asim::kTransposeBlocks;

struct TransDataTo5HDParams {
    TransDataTo5HDParams() = default;
    TransDataTo5HDParams(bool dst_high, bool src_high, uint8_t repeats, uint16_t dst_repeat, uint16_t src_repeat)
        : dstHighHalf(dst_high), srcHighHalf(src_high), repeatTimes(repeats), dstRepStride(dst_repeat),
          srcRepStride(src_repeat) {}

    bool dstHighHalf = false;
    bool srcHighHalf = false;
    uint8_t repeatTimes = 1;
    uint16_t dstRepStride = 0;
    uint16_t srcRepStride = 0;
};

template <typename T>
__aicore__ inline void TransDataTo5HD(uint64_t dstList[NCHW_CONV_ADDR_LIST_SIZE], uint64_t srcList[NCHW_CONV_ADDR_LIST_SIZE],
                                      const TransDataTo5HDParams &params) {
    static_assert(sizeof(T) <= 4, "TransDataTo5HD takes elements of 8, 16 or 32 bits on Atlas A2");
    using Bits = std::conditional_t<sizeof(T) == 1, uint8_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>>;
    asim::transpose_blocks<Bits>(dstList, srcList,
                                 {params.repeatTimes, params.dstRepStride, params.srcRepStride, params.dstHighHalf,
                                  params.srcHighHalf});
}

template <typename T>
__aicore__ inline void TransDataTo5HD(const LocalTensor<T> (&dstList)[NCHW_CONV_ADDR_LIST_SIZE],
                                      const LocalTensor<T> (&srcList)[NCHW_CONV_ADDR_LIST_SIZE],
                                      const TransDataTo5HDParams &params) {
    uint64_t dst[NCHW_CONV_ADDR_LIST_SIZE];
    uint64_t src[NCHW_CONV_ADDR_LIST_SIZE];
    for (int32_t i = 0; i < NCHW_CONV_ADDR_LIST_SIZE; ++i) {
        dst[i] = reinterpret_cast<uint64_t>(dstList[i].bytes());
        src[i] = reinterpret_cast<uint64_t>(srcList[i].bytes());
    }
    TransDataTo5HD<T>(dst, src, params);
}

// A matrix of 16 x 16 elements of 16 bits.
template <typename T>
__aicore__ inline void Transpose(const LocalTensor<T> &dst, const LocalTensor<T> &src) {
    static_assert(sizeof(T) == 2, "Transpose takes elements of 16 bits");
    uint64_t rows[2][NCHW_CONV_ADDR_LIST_SIZE];
    for (int32_t i = 0; i < NCHW_CONV_ADDR_LIST_SIZE; ++i) {
        rows[0][i] = reinterpret_cast<uint64_t>(dst.bytes() + i * asim::kUbBlockBytes);
        rows[1][i] = reinterpret_cast<uint64_t>(src.bytes() + i * asim::kUbBlockBytes);
    }
    TransDataTo5HD<T>(rows[0], rows[1], TransDataTo5HDParams());
}

}  // namespace AscendC
