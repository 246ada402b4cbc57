// BroadCast, Sum, Mean and SelectWithBytesMask.
#pragma once
#include "asim/api/math.h"
#include "asim/api/sync.h"
#include "asim/api/vector_cast.h"
#include "asim/api/vector_gather.h"
#include "asim/semantics/rows.h"

namespace AscendC {

struct SumParams {
    uint32_t outter = 1;
    uint32_t inner = 0;     // elements from row to row
    uint32_t n = 0;         // elements that count
};

struct MeanParams {
    uint32_t outter = 1;
    uint32_t inner = 0;
    uint32_t n = 0;
};

struct SelectWithBytesMaskShapeInfo {
    uint32_t firstAxis = 0;
    uint32_t srcLastAxis = 0;
    uint32_t maskLastAxis = 0;
};

// Of DropOut (drop_out.h).
struct DropOutShapeInfo {
    uint32_t firstAxis = 0;
    uint32_t srcLastAxis = 0;
    uint32_t maskLastAxis = 0;
};

template <typename T, int32_t dim, int32_t axis>
__aicore__ inline void broadcast(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t *shape, asim::Scratch scratch);

// Elements of one byte go through half, which holds each of them: those of the source, then those of the result.
template <typename T, int32_t dim, int32_t axis>
__aicore__ inline void broadcast_bytes(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t *shape, asim::Scratch scratch) {
    static_assert(!std::is_same_v<T, bool> && !std::is_same_v<T, int4b_t>, "BroadCast takes int8_t, uint8_t, half and float on Atlas A2");
    const uint32_t from = dim == 1 ? 1 : axis == 1 ? shape[0] : shape[1], to = dim == 1 ? shape[0] : shape[0] * shape[1];
    const auto room = [](uint32_t elems) { return AlignUp(elems * static_cast<uint32_t>(sizeof(half)), asim::kUbBlockBytes); };
    const uint32_t taken = room(from) + room(to);
    asim::check_operands(asim::LibraryContract::BroadCast, dst.bytes(), to, src.bytes(), from);
    asim::check_scratch(asim::ComposedCall::Broadcast, scratch, taken);
    const LocalTensor<half> source(scratch.base, room(from), TPosition::VECCALC), result(scratch.base + room(from), room(to), TPosition::VECCALC);
    Cast(source, src, RoundMode::CAST_NONE, from);
    PipeBarrier<PIPE_V>();
    broadcast<half, dim, axis>(result, source, shape, {scratch.base + taken, scratch.bytes - taken});
    PipeBarrier<PIPE_V>();
    Cast(dst, result, RoundMode::CAST_NONE, to);
    PipeBarrier<PIPE_V>();
}

// From [1] to [n], from [m, 1] to [m, n] (axis 1) or from [1, n] to [m, n] (axis 0).
template <typename T, int32_t dim, int32_t axis>
__aicore__ inline void broadcast(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t *shape,
                                 asim::Scratch scratch) {
    static_assert(dim == 1 || dim == 2, "BroadCast takes one or two dimensions");
    if constexpr (sizeof(T) == 1) return broadcast_bytes<T, dim, axis>(dst, src, shape, scratch);
    require_movable<T>();
    using Bits = asim::BitsOf<T>;
    if constexpr (dim == 1) {
        asim::broadcast_columns<Bits>(dst.bytes(), src.bytes(), {1, shape[0]}, scratch);
    } else if constexpr (axis == 1) {
        asim::broadcast_columns<Bits>(dst.bytes(), src.bytes(), {shape[0], shape[1]}, scratch);
    } else {
        asim::broadcast_rows<Bits>(dst.bytes(), src.bytes(), {shape[0], shape[1]}, scratch);
    }
}

#define ASIM_BROADCAST(Name)                                                                                        \
    template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>                                    \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t dstShape[dim], \
                                const uint32_t[dim], const LocalTensor<uint8_t> &sharedTmpBuffer) {                 \
        broadcast<T, dim, axis>(dst, src, dstShape, scratch_of(sharedTmpBuffer));                                   \
    }                                                                                                               \
    template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>                                    \
    __aicore__ inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t dstShape[dim], \
                                const uint32_t[dim]) {                                                              \
        broadcast<T, dim, axis>(dst, src, dstShape, asim::remaining_scratch());                                     \
    }
ASIM_BROADCAST(BroadCast)
ASIM_BROADCAST(Broadcast)
#undef ASIM_BROADCAST

template <typename T, int32_t reduceDim = -1, bool isReuseSource = false, bool isBasicBlock = false>
__aicore__ inline void Sum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &sharedTmpBuffer,
                           const SumParams &params) {
    require_math_type<T>();
    asim::sum_rows<T>(dst.bytes(), src.bytes(), {params.outter, params.n}, params.inner, scratch_of(sharedTmpBuffer));
}
template <typename T, int32_t reduceDim = -1, bool isReuseSource = false, bool isBasicBlock = false>
__aicore__ inline void Sum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const SumParams &params) {
    require_math_type<T>();
    asim::sum_rows<T>(dst.bytes(), src.bytes(), {params.outter, params.n}, params.inner, asim::remaining_scratch());
}

// Sums scaled by 1 / n. Half sums are accumulated in half, or in float if that is accType.
template <typename T, typename accType = T, bool isReuseSource = false, bool isBasicBlock = false, int32_t reduceDim = -1>
__aicore__ inline void Mean(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &sharedTmpBuffer,
                            const MeanParams &params) {
    static_assert(std::is_same_v<T, accType> || (std::is_same_v<T, half> && std::is_same_v<accType, float>),
                  "the accumulator of Mean is the element type, or float for half");
    require_math_type<T>();
    if constexpr (!std::is_same_v<T, accType>) {
        return asim::mean_rows_in_float(dst.bytes(), src.bytes(), {params.outter, params.n}, params.inner, scratch_of(sharedTmpBuffer));
    }
    asim::mean_rows<T>(dst.bytes(), src.bytes(), {params.outter, params.n}, params.inner, scratch_of(sharedTmpBuffer));
}
template <typename T, typename accType = T, bool isReuseSource = false, bool isBasicBlock = false, int32_t reduceDim = -1>
__aicore__ inline void Mean(const LocalTensor<T> &dst, const LocalTensor<T> &src, const MeanParams &params) {
    LocalTensor<uint8_t> scratch;
    PopStackBuffer<uint8_t, TPosition::LCM>(scratch);
    Mean<T, accType>(dst, src, scratch, params);
}

// Where the mask is 0 the first source is taken, else the second.
template <typename T, typename U, bool isReuseMask = true>
__aicore__ inline void SelectWithBytesMask(const LocalTensor<T> &dst, const LocalTensor<T> &src0, T src1,
                                           const LocalTensor<U> &mask, const LocalTensor<uint8_t> &sharedTmpBuffer,
                                           const SelectWithBytesMaskShapeInfo &info) {
    static_assert(sizeof(U) == 1, "SelectWithBytesMask is simulated for masks of 8 bits");
    asim::select_by_bytes<T>(dst.bytes(), src0.bytes(), src1, mask.bytes(), {info.firstAxis, info.srcLastAxis},
                             info.maskLastAxis, true, scratch_of(sharedTmpBuffer));
}
template <typename T, typename U, bool isReuseMask = true>
__aicore__ inline void SelectWithBytesMask(const LocalTensor<T> &dst, T src0, const LocalTensor<T> &src1,
                                           const LocalTensor<U> &mask, const LocalTensor<uint8_t> &sharedTmpBuffer,
                                           const SelectWithBytesMaskShapeInfo &info) {
    static_assert(sizeof(U) == 1, "SelectWithBytesMask is simulated for masks of 8 bits");
    asim::select_by_bytes<T>(dst.bytes(), src1.bytes(), src0, mask.bytes(), {info.firstAxis, info.srcLastAxis},
                             info.maskLastAxis, false, scratch_of(sharedTmpBuffer));
}

// The same calls by their newer name.
template <typename T, typename U, bool isReuseMask = true>
__aicore__ inline void Select(const LocalTensor<T> &dst, const LocalTensor<T> &src0, T src1, const LocalTensor<U> &mask,
                              const LocalTensor<uint8_t> &sharedTmpBuffer, const SelectWithBytesMaskShapeInfo &info) {
    SelectWithBytesMask<T, U, isReuseMask>(dst, src0, src1, mask, sharedTmpBuffer, info);
}
template <typename T, typename U, bool isReuseMask = true>
__aicore__ inline void Select(const LocalTensor<T> &dst, T src0, const LocalTensor<T> &src1, const LocalTensor<U> &mask,
                              const LocalTensor<uint8_t> &sharedTmpBuffer, const SelectWithBytesMaskShapeInfo &info) {
    SelectWithBytesMask<T, U, isReuseMask>(dst, src0, src1, mask, sharedTmpBuffer, info);
}

}  // namespace AscendC
