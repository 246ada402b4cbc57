// CreateVecIndex and ArithProgression: arithmetic progressions.
#pragma once
#include "asim/api/tensor.h"
#include "asim/semantics/gather.h"

namespace AscendC {

// The first `count` elements as whole repeats and a rest.
template <typename T>
constexpr asim::ProgressionShape counted_progression(uint32_t count) {
    constexpr uint32_t lanes = asim::kRepeatBytes / sizeof(T);
    const uint32_t repeats = (count + lanes - 1) / lanes;
    return {lanes, repeats, count - (repeats == 0 ? 0 : repeats - 1) * lanes};
}

template <typename T>
constexpr void require_index_type() {
    static_assert(asim::contains<T, asim::TypeList<half, float, int16_t, int32_t>>::value,
                  "CreateVecIndex and ArithProgression take half, float, int16_t and int32_t on Atlas A2");
}

template <typename T>
__aicore__ inline void CreateVecIndex(LocalTensor<T> dst, const T &firstValue, uint32_t count) {
    require_index_type<T>();
    asim::progression<T>(asim::linear(dst), firstValue, T(1), counted_progression<T>(count));
}

template <typename T>
__aicore__ inline void CreateVecIndex(LocalTensor<T> &dst, const T &firstValue, uint64_t mask, uint8_t repeatTime,
                                      uint16_t dstBlkStride, uint8_t dstRepStride) {
    require_index_type<T>();
    const uint32_t lanes = static_cast<uint32_t>(mask);
    asim::progression<T>(asim::strided(dst, dstBlkStride, dstRepStride), firstValue, T(1), {lanes, repeatTime, lanes});
}

// The library rounds the number of elements up to whole blocks, unless it is less than one.
template <typename T>
__aicore__ inline void ArithProgression(const LocalTensor<T> &dst, const T firstValue, const T diffValue, const int32_t count) {
    require_index_type<T>();
    constexpr uint32_t per_block = asim::kUbBlockBytes / sizeof(T);
    const uint32_t elements = count > 0 ? static_cast<uint32_t>(count) : 0;
    const uint32_t written = elements <= per_block ? elements : (elements + per_block - 1) / per_block * per_block;
    asim::progression<T>(asim::linear(dst), firstValue, diffValue, counted_progression<T>(written));
}

}  // namespace AscendC
