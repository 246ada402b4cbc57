// DataCopy and DataCopyPad between global memory and the unified buffer, and atomic modes.
#pragma once
#include <cstring>

#include "asim/api/pipe.h"
#include "asim/machine/registers.h"
#include "asim/semantics/atomic_type.h"
#include "asim/semantics/copy.h"
#include "asim/semantics/cube_copy.h"

namespace AscendC {

// Lengths and gaps in 32 B data blocks.
struct DataCopyParams {
    DataCopyParams() = default;
    DataCopyParams(uint16_t count, uint16_t length, uint16_t source_gap, uint16_t destination_gap)
        : blockCount(count), blockLen(length), srcStride(source_gap), dstStride(destination_gap) {}

    uint16_t blockCount = 1;
    uint16_t blockLen = 0;
    union {
        uint16_t srcStride = 0;
        uint16_t srcGap;
    };
    union {
        uint16_t dstStride = 0;
        uint16_t dstGap;
    };
};

// Lengths in bytes; gaps in bytes on the GM side and in 32 B data blocks on the UB side.
struct DataCopyExtParams {
    DataCopyExtParams() = default;
    DataCopyExtParams(uint16_t count, uint32_t length, uint32_t source_gap, uint32_t destination_gap, uint32_t reserved)
        : blockCount(count), blockLen(length), srcStride(source_gap), dstStride(destination_gap), rsv(reserved) {}

    uint16_t blockCount = 1;
    uint32_t blockLen = 0;
    uint32_t srcStride = 0;
    uint32_t dstStride = 0;
    uint32_t rsv = 0;
};

struct DataCopyPadParams {
    DataCopyPadParams() = default;
    DataCopyPadParams(bool pad, uint8_t left, uint8_t right, uint64_t value)
        : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value) {}

    bool isPad = false;
    uint8_t leftPadding = 0;
    uint8_t rightPadding = 0;
    uint64_t paddingValue = 0;
};

template <typename T>
struct DataCopyPadExtParams {
    DataCopyPadExtParams() = default;
    template <typename U>
    DataCopyPadExtParams(bool pad, uint8_t left, uint8_t right, U value)
        : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(static_cast<T>(value)) {}

    bool isPad = false;
    uint8_t leftPadding = 0;
    uint8_t rightPadding = 0;
    T paddingValue = T();
};

template <typename U>
DataCopyPadExtParams(bool, uint8_t, uint8_t, U) -> DataCopyPadExtParams<U>;

enum class PaddingMode : uint8_t { Normal = 0, Compact };

template <typename T>
constexpr uint32_t atomic_type() {
    using asim::AtomicType;
    if constexpr (std::is_same_v<T, half>) return static_cast<uint32_t>(AtomicType::F16);
    if constexpr (std::is_same_v<T, bfloat16_t>) return static_cast<uint32_t>(AtomicType::Bf16);
    if constexpr (std::is_same_v<T, int32_t> || std::is_same_v<T, uint32_t>) return static_cast<uint32_t>(AtomicType::I32);
    if constexpr (std::is_same_v<T, int16_t> || std::is_same_v<T, uint16_t>) return static_cast<uint32_t>(AtomicType::I16);
    if constexpr (sizeof(T) == 1) return static_cast<uint32_t>(AtomicType::I8);
    return static_cast<uint32_t>(AtomicType::F32);
}

inline asim::CopyShape block_copy(uint32_t count, uint32_t length, uint32_t gm_gap, uint32_t ub_gap) {
    const uint32_t bytes = length * asim::kUbBlockBytes;
    return {count, bytes, bytes + uint64_t{gm_gap} * asim::kUbBlockBytes, bytes + uint64_t{ub_gap} * asim::kUbBlockBytes};
}

// A contiguous copy moves whole data blocks: a remainder below 32 B is left out, as documented.
template <typename T>
asim::CopyShape contiguous_copy(uint32_t size_elems) {
    const uint32_t bytes = static_cast<uint32_t>(uint64_t{size_elems} * sizeof(T)) / asim::kUbBlockBytes * asim::kUbBlockBytes;
    return {1, bytes, bytes, bytes};
}

// The same to or from global memory: its strides are the bytes that are asked for, from which the remainder is told. Not of elements of
// one byte: their number is often widened elsewhere too, and an instruction that the two share is not priced twice.
template <typename T>
asim::CopyShape contiguous_gm_copy(uint32_t size_elems) {
    const uint32_t bytes = static_cast<uint32_t>(uint64_t{size_elems} * sizeof(T));
    const uint32_t copied = bytes / asim::kUbBlockBytes * asim::kUbBlockBytes;
    const uint32_t stride = sizeof(T) == 1 ? copied : bytes;
    return {1, copied, stride, stride};
}

// Copies with the cache hint of the tensor in global memory.
template <typename T>
inline __attribute__((always_inline)) void copy_in(asim::CopyCall call, const LocalTensor<T> &dst, const GlobalTensor<T> &src, asim::CopyShape shape,
             const asim::PadShape &pad) {
    shape.bypass_l2 = src.reads_bypass_l2();
    const asim::Space space = space_of(dst.GetPosition());
    if (space == asim::Space::L1) return asim::copy_gm_to_l1(asim::CopyCall::DataCopy, space, dst.bytes(), src.bytes(), shape, pad);
    asim::copy_gm_to_ub(call, dst.bytes(), src.bytes(), shape, pad);
}

template <typename T>
inline __attribute__((always_inline)) void copy_out(asim::CopyCall call, const GlobalTensor<T> &dst, const LocalTensor<T> &src, asim::CopyShape shape) {
    shape.bypass_l2 = dst.writes_bypass_l2();
    if (space_of(src.GetPosition()) == asim::Space::L1) {
        return asim::copy_l1_to_gm(dst.bytes(), src.bytes(), shape);
    }
    asim::copy_ub_to_gm(call, dst.bytes(), src.bytes(), shape, atomic_type<T>());
}

template <typename T>
__aicore__ inline void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const uint32_t count) {
    copy_in(asim::CopyCall::DataCopy, dst, src, contiguous_gm_copy<T>(count), {});
}

template <typename T>
__aicore__ inline void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyParams &params) {
    copy_in(asim::CopyCall::DataCopy, dst, src,
            block_copy(params.blockCount, params.blockLen, params.srcStride, params.dstStride), {});
}

template <typename T>
__aicore__ inline void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t count) {
    copy_out(asim::CopyCall::DataCopy, dst, src, contiguous_gm_copy<T>(count));
}

template <typename T>
__aicore__ inline void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyParams &params) {
    copy_out(asim::CopyCall::DataCopy, dst, src,
             block_copy(params.blockCount, params.blockLen, params.dstStride, params.srcStride));
}

// From L1 to the bias table in units of 64 B there, to the fixpipe buffer in units of 128 B from start to start.
inline asim::CopyShape table_copy(asim::Space space, const DataCopyParams &params, bool widens) {
    if (space == asim::Space::BiasTable) {
        const uint32_t written = params.blockLen * 64u;
        const uint32_t bytes = widens ? written / 2 : written;
        return {params.blockCount, bytes, bytes + uint64_t{params.srcGap} * asim::kUbBlockBytes, written + uint64_t{params.dstGap} * 64};
    }
    return {params.blockCount, params.blockLen * 128u, uint64_t{params.srcGap} * asim::kUbBlockBytes, uint64_t{params.dstGap} * 128};
}

inline bool is_table(asim::Space space) { return space == asim::Space::BiasTable || space == asim::Space::FixpipeBuffer; }

template <typename T>
__aicore__ inline void DataCopy(const LocalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyParams &params) {
    const asim::Space space = space_of(dst.GetPosition());
    if (is_table(space)) {
        return asim::copy_l1_to_table(space, dst.bytes(), src.bytes(), table_copy(space, params, false), false);
    }
    const auto shape = block_copy(params.blockCount, params.blockLen, params.srcStride, params.dstStride);
    asim::copy_ub_to_ub(dst.bytes(), src.bytes(), shape.burst_count, shape.burst_bytes,
                        static_cast<uint32_t>(shape.ub_stride_bytes), static_cast<uint32_t>(shape.gm_stride_bytes));
}

template <typename T>
__aicore__ inline void DataCopy(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t count) {
    const auto shape = contiguous_copy<T>(count);
    const asim::Space space = space_of(dst.GetPosition());
    if (is_table(space)) return asim::copy_l1_to_table(space, dst.bytes(), src.bytes(), shape, false);
    asim::copy_ub_to_ub(dst.bytes(), src.bytes(), 1, shape.burst_bytes, shape.burst_bytes, shape.burst_bytes);
}

// Rows of a padded copy start at 32 B boundaries in UB.
inline asim::CopyShape padded_copy(uint32_t count, uint32_t bytes, uint64_t gm_gap_bytes, uint64_t ub_gap_blocks,
                                   uint32_t padding_bytes) {
    const uint64_t row = (uint64_t{bytes} + padding_bytes + asim::kUbBlockBytes - 1) / asim::kUbBlockBytes;
    return {count, bytes, bytes + gm_gap_bytes, (row + ub_gap_blocks) * asim::kUbBlockBytes};
}

// What padded copies that give no value of their own fill in.
template <typename T, TPosition position = TPosition::MAX>
__aicore__ inline void SetPadValue(T paddingValue) {
    asim::set_padding(asim::bits_of_element(paddingValue));
}

template <typename T, typename Value>
asim::PadShape padding(bool fill, uint32_t left_elems, uint32_t right_elems, Value value) {
    asim::PadShape pad;
    pad.fill = fill;
    pad.left_bytes = left_elems * sizeof(T);
    pad.right_bytes = right_elems * sizeof(T);
    pad.element_bytes = sizeof(T);
    pad.value = asim::bits_of_element(value);
    return pad;
}

template <typename T, PaddingMode mode = PaddingMode::Normal>
__aicore__ inline void DataCopyPad(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyExtParams &params,
                                   const DataCopyPadExtParams<T> &pad_params) {
    const auto pad = padding<T>(pad_params.isPad, pad_params.leftPadding, pad_params.rightPadding, pad_params.paddingValue);
    copy_in(asim::CopyCall::DataCopyPad, dst, src,
            padded_copy(params.blockCount, params.blockLen, params.srcStride, params.dstStride,
                        pad.left_bytes + pad.right_bytes),
            pad);
}

template <typename T, PaddingMode mode = PaddingMode::Normal>
__aicore__ inline void DataCopyPad(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyParams &params,
                                   const DataCopyPadParams &pad_params) {
    const auto pad = padding<T>(pad_params.isPad, pad_params.leftPadding, pad_params.rightPadding, pad_params.paddingValue);
    copy_in(asim::CopyCall::DataCopyPad, dst, src,
            padded_copy(params.blockCount, params.blockLen, params.srcStride, params.dstStride,
                        pad.left_bytes + pad.right_bytes),
            pad);
}

template <typename T, PaddingMode mode = PaddingMode::Normal>
__aicore__ inline void DataCopyPad(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyExtParams &params) {
    copy_out(asim::CopyCall::DataCopyPad, dst, src,
             padded_copy(params.blockCount, params.blockLen, params.dstStride, params.srcStride, 0));
}

template <typename T, PaddingMode mode = PaddingMode::Normal>
__aicore__ inline void DataCopyPad(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyParams &params) {
    copy_out(asim::CopyCall::DataCopyPad, dst, src,
             padded_copy(params.blockCount, params.blockLen, params.dstStride, params.srcStride, 0));
}

template <typename T>
constexpr void require_atomic_type() {
    static_assert(asim::contains<T, asim::TypeList<int8_t, int16_t, half, bfloat16_t, int32_t, float>>::value,
                  "copies accumulate int8_t, int16_t, half, bfloat16_t, int32_t or float on Atlas A2");
}

template <typename T>
__aicore__ inline void SetAtomicAdd() {
    require_atomic_type<T>();
    asim::set_atomic(asim::AtomicMode::Add);
}
template <typename T>
__aicore__ inline void SetAtomicMax() {
    require_atomic_type<T>();
    asim::set_atomic(asim::AtomicMode::Max);
}
template <typename T>
__aicore__ inline void SetAtomicMin() {
    require_atomic_type<T>();
    asim::set_atomic(asim::AtomicMode::Min);
}
// The type of accumulations is that of the tensors.
template <typename T>
__aicore__ inline void SetAtomicType() {
    require_atomic_type<T>();
}
__aicore__ inline void DisableDmaAtomic() { asim::set_atomic(asim::AtomicMode::None); }
__aicore__ inline void SetAtomicNone() { asim::set_atomic(asim::AtomicMode::None); }

}  // namespace AscendC
