// Fixpipe: results from L0C to global memory and L1.
#pragma once
#include "asim/api/data_copy.h"
#include "asim/semantics/fixpipe.h"

enum QuantMode_t {
    NoQuant, F322F16, F322BF16, DEQF16, VDEQF16, QF322B8_PRE, VQF322B8_PRE, REQ8, VREQ8
};

namespace AscendC {

enum class CO2Layout : uint8_t { NZ = 0, ROW_MAJOR, COLUMN_MAJOR };

struct FixpipeConfig {
    CO2Layout format;
    bool isToUB = false;        // of later chips: kernels for several of them declare it
};
constexpr FixpipeConfig CFG_NZ = {CO2Layout::NZ};
constexpr FixpipeConfig CFG_ROW_MAJOR = {CO2Layout::ROW_MAJOR};

struct FixpipeParamsV220 {
    FixpipeParamsV220() = default;
    FixpipeParamsV220(uint16_t columns, uint16_t rows, uint16_t source_stride, uint32_t destination_stride, bool relu)
        : nSize(columns), mSize(rows), srcStride(source_stride), dstStride(destination_stride), reluEn(relu) {}
    FixpipeParamsV220(uint16_t columns, uint16_t rows, uint16_t source_stride, uint32_t destination_stride, bool relu,
                      QuantMode_t quantisation, int64_t scale, uint16_t matrices, uint16_t source_matrix_stride,
                      uint16_t destination_matrix_stride, uint8_t unit_flag, bool split_channels = false)
        : nSize(columns), mSize(rows), srcStride(source_stride), dstStride(destination_stride), quantPre(quantisation),
          deqScalar(static_cast<uint64_t>(scale)), ndNum(matrices), srcNdStride(source_matrix_stride),
          dstNdStride(destination_matrix_stride), reluEn(relu), unitFlag(unit_flag), isChannelSplit(split_channels) {}

    uint16_t nSize = 0;
    uint16_t mSize = 0;
    uint16_t srcStride = 0;         // rows of 16 results
    uint32_t dstStride = 0;         // elements to rows, 32 B to fractals
    QuantMode_t quantPre = QuantMode_t::NoQuant;
    uint64_t deqScalar = 0;
    uint16_t ndNum = 1;
    uint16_t srcNdStride = 0;       // 256 results
    uint16_t dstNdStride = 0;       // elements
    bool reluEn = false;
    uint8_t unitFlag = 0;
    bool isChannelSplit = false;
};
using FixpipeParamsM300 = FixpipeParamsV220;
using FixpipeParamsM310 = FixpipeParamsV220;

struct DataCopyCO12DstParams {
    DataCopyCO12DstParams() = default;
    DataCopyCO12DstParams(uint16_t columns, uint16_t rows, uint32_t destination_stride, uint16_t source_stride,
                          QuantMode_t quantisation, uint8_t relu, bool split_channels, bool to_rows)
        : nSize(columns), mSize(rows), dstStride(destination_stride), srcStride(source_stride), quantPre(quantisation),
          reluPre(relu), channelSplit(split_channels), nz2ndEn(to_rows) {}

    uint8_t sid = 0;
    uint16_t nSize = 0;
    uint16_t mSize = 0;
    uint32_t dstStride = 0;
    uint16_t srcStride = 0;
    uint8_t unitFlag = 0;
    uint8_t clipReluPre = 0;
    uint8_t eltWiseOp = 0;
    QuantMode_t quantPre = QuantMode_t::NoQuant;
    uint8_t reluPre = 0;
    bool channelSplit = false;
    bool nz2ndEn = false;
};

template <typename T>
constexpr asim::ResultType result_type() {
    using asim::ResultType;
    static_assert(asim::contains<T, asim::TypeList<half, bfloat16_t, float, int32_t, int8_t, uint8_t>>::value,
                  "Fixpipe gives half, bfloat16_t, float, int32_t, int8_t and uint8_t");
    if constexpr (std::is_same_v<T, half>) return ResultType::F16;
    if constexpr (std::is_same_v<T, bfloat16_t>) return ResultType::Bf16;
    if constexpr (std::is_same_v<T, int32_t>) return ResultType::I32;
    if constexpr (std::is_same_v<T, int8_t>) return ResultType::I8;
    if constexpr (std::is_same_v<T, uint8_t>) return ResultType::U8;
    return ResultType::F32;
}

constexpr asim::Quantization quantization_of(QuantMode_t mode) {
    switch (mode) {
        case NoQuant: return asim::Quantization::None;
        case F322F16: return asim::Quantization::ToF16;
        case F322BF16: return asim::Quantization::ToBf16;
        case DEQF16:
        case VDEQF16: return asim::Quantization::ScaledF16;
        default: return asim::Quantization::ScaledB8;
    }
}

constexpr bool scales_by_column(QuantMode_t mode) { return mode == VDEQF16 || mode == VQF322B8_PRE || mode == VREQ8; }

template <typename T, typename U>
asim::FixpipeShape fixpipe_shape(const FixpipeParamsV220 &params, bool to_rows, const uint8_t *scales) {
    static_assert(std::is_same_v<U, float> || std::is_same_v<U, int32_t>, "L0C holds float or int32_t");
    asim::FixpipeShape shape;
    shape.m = params.mSize;
    shape.n = params.nSize;
    shape.matrices = to_rows ? params.ndNum : 1;
    shape.src_stride_rows = params.srcStride;
    shape.src_matrix_stride_bytes = uint64_t{params.srcNdStride} * 1024;
    shape.dst_stride_bytes = uint64_t{params.dstStride} * (to_rows ? sizeof(T) : asim::kUbBlockBytes);
    shape.dst_matrix_stride_bytes = uint64_t{params.dstNdStride} * sizeof(T);
    shape.to_rows = to_rows;
    shape.split_channels = params.isChannelSplit;
    shape.integers = std::is_same_v<U, int32_t>;
    shape.result = result_type<T>();
    shape.quantization = quantization_of(params.quantPre);
    shape.scale = params.deqScalar;
    shape.scales = scales_by_column(params.quantPre) ? scales : nullptr;
    shape.relu = params.reluEn;
    shape.unit_flag = (params.unitFlag & 2) != 0;
    shape.atomic_type = atomic_type<T>();
    return shape;
}

template <const FixpipeConfig &config>
constexpr bool as_rows() {
    static_assert(!config.isToUB, "Atlas A2 has no way from L0C to the unified buffer");
    return config.format == CO2Layout::ROW_MAJOR;
}

template <typename T, typename U, const FixpipeConfig &config = CFG_ROW_MAJOR>
__aicore__ inline void Fixpipe(const GlobalTensor<T> &dst, const LocalTensor<U> &src, const FixpipeParamsV220 &params) {
    auto shape = fixpipe_shape<T, U>(params, as_rows<config>(), nullptr);
    shape.bypass_l2 = dst.writes_bypass_l2();
    asim::fixpipe_to_gm(dst.bytes(), src.bytes(), shape);
}

template <typename T, typename U, const FixpipeConfig &config = CFG_ROW_MAJOR, typename S = uint64_t>
__aicore__ inline void Fixpipe(const GlobalTensor<T> &dst, const LocalTensor<U> &src, const LocalTensor<S> &scales,
                               const FixpipeParamsV220 &params) {
    auto shape = fixpipe_shape<T, U>(params, as_rows<config>(), scales.bytes());
    shape.bypass_l2 = dst.writes_bypass_l2();
    asim::fixpipe_to_gm(dst.bytes(), src.bytes(), shape);
}

template <typename T, typename U, const FixpipeConfig &config = CFG_ROW_MAJOR>
__aicore__ inline void Fixpipe(const LocalTensor<T> &dst, const LocalTensor<U> &src, const FixpipeParamsV220 &params) {
    asim::fixpipe_to_l1(dst.bytes(), src.bytes(), fixpipe_shape<T, U>(params, as_rows<config>(), nullptr));
}

template <typename T, typename U, const FixpipeConfig &config = CFG_ROW_MAJOR, typename S = uint64_t>
__aicore__ inline void Fixpipe(const LocalTensor<T> &dst, const LocalTensor<U> &src, const LocalTensor<S> &scales,
                               const FixpipeParamsV220 &params) {
    asim::fixpipe_to_l1(dst.bytes(), src.bytes(), fixpipe_shape<T, U>(params, as_rows<config>(), scales.bytes()));
}

// Registers of the DataCopy forms below.
__aicore__ inline void SetFixpipeNz2ndFlag(uint16_t ndNum, uint16_t srcNdStride, uint16_t dstNdStride) {
    asim::set_nz2nd(ndNum, srcNdStride, dstNdStride);
}
__aicore__ inline void SetFixpipePreQuantFlag(uint64_t config) { asim::set_quant_scale(config); }
template <typename T, bool setRelu = false>
__aicore__ inline void SetFixPipeConfig(const LocalTensor<T> &preData, bool = false) {
    if (!setRelu) asim::set_quant_scales(preData.bytes());
}
template <typename T>
__aicore__ inline void SetFixPipeConfig(const LocalTensor<T> &, const LocalTensor<T> &quantPre, bool = false) {
    asim::set_quant_scales(quantPre.bytes());
}

template <typename T, typename U>
asim::FixpipeShape fixpipe_shape(const DataCopyCO12DstParams &params) {
    const FixpipeParamsV220 same(params.nSize, params.mSize, params.srcStride, params.dstStride, params.reluPre != 0, params.quantPre, 0, 1,
                                 0, 0, params.unitFlag, params.channelSplit);
    asim::FixpipeShape shape = fixpipe_shape<T, U>(same, params.nz2ndEn, nullptr);
    shape.by_registers = true;
    shape.by_column = scales_by_column(params.quantPre);
    return shape;
}

template <typename T, typename U>
__aicore__ inline void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<U> &src, const DataCopyCO12DstParams &params) {
    auto shape = fixpipe_shape<T, U>(params);
    shape.bypass_l2 = dst.writes_bypass_l2();
    asim::fixpipe_to_gm(dst.bytes(), src.bytes(), shape);
}

template <typename T, typename U>
__aicore__ inline void DataCopy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const DataCopyCO12DstParams &params) {
    asim::fixpipe_to_l1(dst.bytes(), src.bytes(), fixpipe_shape<T, U>(params));
}

}  // namespace AscendC
