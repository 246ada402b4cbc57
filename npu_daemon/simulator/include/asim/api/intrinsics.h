// Names below the basic API that kernels use all the same: raw instructions on unified buffer pointers, internals of the
// library, scalar conversions, and output for debugging, which a kernel does not make here.
#pragma once
#include "asim/api/data_copy.h"
#include "asim/api/vector_reduce.h"
#include "asim/api/vector_transpose.h"
#include "asim/machine/refusal.h"
#include "asim/machine/registers.h"
#include "asim/numeric/rounding.h"

namespace AscendC {

// Bits of the accumulator of the last accumulating sum.
__aicore__ inline int64_t GetAccVal() {
    asim::read_register(asim::VectorRegister::Sum);
    return asim::accumulated_bits();
}

// An event between two pipes under an id of the caller's choice.
template <pipe_t source, pipe_t target>
class TQueSync {
public:
    void SetFlag(TEventID id) {
        asim::set_flag(static_cast<asim::Pipe>(source), static_cast<asim::Pipe>(target), static_cast<uint32_t>(id));
    }
    void WaitFlag(TEventID id) {
        asim::wait_flag(static_cast<asim::Pipe>(source), static_cast<asim::Pipe>(target), static_cast<uint32_t>(id));
    }
};

template <typename T, typename U, RoundMode roundMode>
__aicore__ inline U ScalarCast(T value) {
    return asim::convert<roundMode, U>(value);
}

// Scalars: a float as bfloat16_t, the reverse, and the conversions of the table on the page.
__aicore__ inline bfloat16_t Cast(const float &fVal) { return asim::convert<RoundMode::CAST_RINT, bfloat16_t>(fVal); }
__aicore__ inline float Cast(const bfloat16_t &bVal) { return static_cast<float>(bVal); }
template <typename T, typename U, RoundMode roundMode>
__aicore__ inline U Cast(T valueIn) {
    constexpr bool to_half = std::is_same_v<U, half> && roundMode == RoundMode::CAST_ODD;
    constexpr bool to_int = std::is_same_v<U, int32_t> && (roundMode == RoundMode::CAST_ROUND || roundMode == RoundMode::CAST_CEIL ||
                                                           roundMode == RoundMode::CAST_FLOOR || roundMode == RoundMode::CAST_RINT);
    static_assert(std::is_same_v<T, float> && (to_half || to_int),
                  "Cast of a scalar takes a float, to half with CAST_ODD or to int32_t with CAST_ROUND, CAST_CEIL, CAST_FLOOR or CAST_RINT");
    return asim::convert<roundMode, U>(valueIn);
}

template <typename T, typename U = uint64_t>
__aicore__ inline U GetScalarBitcodeValue(T value) {
    U bits = 0;
    std::memcpy(&bits, &value, std::min(sizeof bits, sizeof value));
    return bits;
}

// The library at the level of pointers.
template <typename T>
LocalTensor<T> tensor_at(const T *address, uint32_t bytes = 0) {
    return LocalTensor<T>(reinterpret_cast<uint8_t *>(const_cast<T *>(address)), bytes, TPosition::VECCALC);
}

template <typename T>
__aicore__ inline void DuplicateImpl(T *dst, const T value, const int32_t count) {
    Duplicate(tensor_at(dst), value, count);
}

template <typename T>
__aicore__ inline void DataCopyUB2GMImpl(T *dst, const T *src, const DataCopyParams &params) {
    GlobalTensor<T> gm;
    gm.SetGlobalBuffer(dst);
    DataCopy(gm, tensor_at(src), params);
}

template <typename T>
__aicore__ inline void DataCopyPadGm2UBImpl(T *dst, T *src, const DataCopyExtParams &params,
                                            const DataCopyPadExtParams<T> &padParams) {
    GlobalTensor<T> gm;
    gm.SetGlobalBuffer(src);
    DataCopyPad(tensor_at(dst), gm, params, padParams);
}

template <typename T>
__aicore__ inline void DataCopyPadUB2GMImpl(T *dst, T *src, const DataCopyExtParams &params) {
    GlobalTensor<T> gm;
    gm.SetGlobalBuffer(dst);
    DataCopyPad(gm, tensor_at(src), params);
}

template <typename T>
__aicore__ inline void TransDataTo5HDImpl(T *dstList[NCHW_CONV_ADDR_LIST_SIZE], T *srcList[NCHW_CONV_ADDR_LIST_SIZE],
                                          const TransDataTo5HDParams &params) {
    uint64_t dst[NCHW_CONV_ADDR_LIST_SIZE], src[NCHW_CONV_ADDR_LIST_SIZE];
    for (int32_t i = 0; i < NCHW_CONV_ADDR_LIST_SIZE; ++i) {
        dst[i] = reinterpret_cast<uint64_t>(dstList[i]);
        src[i] = reinterpret_cast<uint64_t>(srcList[i]);
    }
    TransDataTo5HD<T>(dst, src, params);
}

// Whole multiples of the second number that hold the first.
__aicore__ constexpr inline int64_t Ceil(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }

// Stops the kernel with an error.
__aicore__ inline void Trap() { asim::refuse(asim::Refusal::Trap); }

template <typename T>
__aicore__ inline void OOMCheckAddrRange(const T *, uint64_t) {}

}  // namespace AscendC

// The compiler's variable for the number of this block.
struct BlockIndexVariable {
    operator int64_t() const { return asim::block_index(); }
};
constexpr BlockIndexVariable block_idx{};

// Sum of each repeat, or with `accumulate` of all repeats into the accumulator; lanes by the mask register.
template <typename T>
__aicore__ inline void vcadd(T *dst, const T *src, uint64_t repeat, uint64_t dst_repeat_stride, uint64_t src_block_stride,
                             uint64_t src_repeat_stride, bool accumulate = false) {
    const asim::Lanes from{reinterpret_cast<uint8_t *>(const_cast<T *>(src)), static_cast<uint32_t>(src_block_stride),
                           static_cast<uint32_t>(src_repeat_stride)};
    const asim::Shape shape = asim::register_shape(static_cast<uint32_t>(repeat));
    if (accumulate) {
        asim::accumulate_sum<T>(reinterpret_cast<uint8_t *>(dst), from, shape);
    } else {
        asim::whole_reduce<T>(asim::Reduction::Sum, {reinterpret_cast<uint8_t *>(dst), static_cast<uint32_t>(dst_repeat_stride)},
                              from, shape);
    }
}

// Value in the low word, index in the high word.
__aicore__ inline int64_t get_max_min_cnt() {
    asim::read_register(asim::VectorRegister::Extreme);
    return static_cast<int64_t>(static_cast<uint64_t>(asim::reduced_index()) << 32 | asim::reduced_value());
}
__aicore__ inline int64_t get_acc_val() { return AscendC::GetAccVal(); }

__aicore__ inline void set_mask_count() { AscendC::SetMaskCount(); }
__aicore__ inline void set_mask_norm() { AscendC::SetMaskNorm(); }
__aicore__ inline void set_vector_mask(uint64_t high, uint64_t low) { AscendC::SetVectorMask<float>(high, low); }

// Lengths and gaps in data blocks.
template <typename T, typename U>
__aicore__ inline void copy_ubuf_to_ubuf(T *dst, U *src, uint8_t, uint16_t bursts, uint16_t length, uint16_t src_gap,
                                         uint16_t dst_gap) {
    const uint32_t bytes = length * asim::kUbBlockBytes;
    asim::copy_ub_to_ub(reinterpret_cast<uint8_t *>(dst), reinterpret_cast<const uint8_t *>(src), bursts, bytes,
                        bytes + dst_gap * asim::kUbBlockBytes, bytes + src_gap * asim::kUbBlockBytes);
}

template <typename T>
__aicore__ inline void vector_dup(T *dst, T value, uint8_t repeat, uint16_t dst_block_stride, uint16_t, uint8_t dst_repeat_stride,
                                  uint8_t) {
    asim::duplicate<T>({reinterpret_cast<uint8_t *>(dst), dst_block_stride, dst_repeat_stride}, value,
                       asim::register_shape(repeat));
}

template <typename T>
__aicore__ inline void vor(T *dst, T *src0, T *src1, uint8_t repeat, uint8_t dst_block, uint8_t src0_block, uint8_t src1_block,
                           uint8_t dst_repeat, uint8_t src0_repeat, uint8_t src1_repeat) {
    asim::binary<asim::Op::Or, T>({reinterpret_cast<uint8_t *>(dst), dst_block, dst_repeat},
                                  {reinterpret_cast<uint8_t *>(src0), src0_block, src0_repeat},
                                  {reinterpret_cast<uint8_t *>(src1), src1_block, src1_repeat}, asim::register_shape(repeat));
}

// Address registers: two that follow each other list the 16 blocks of a transposition.
enum ub_addr8_t { VA0, VA1, VA2, VA3, VA4, VA5, VA6, VA7 };

__aicore__ inline void set_va_reg_sb(ub_addr8_t target, const uint64_t *addresses) {
    asim::set_address_register(target, addresses);
}

__aicore__ inline void scatter_vnchwconv_b16(ub_addr8_t dst, ub_addr8_t src, uint8_t repeat, uint16_t dst_repeat_stride,
                                             uint16_t src_repeat_stride) {
    asim::transpose_by_registers(dst, src, repeat, dst_repeat_stride, src_repeat_stride);
}

__aicore__ inline void vtranspose(uint16_t *dst, uint16_t *src) {
    AscendC::Transpose(AscendC::tensor_at(dst), AscendC::tensor_at(src));
}
