// LoadData from L1 into L0A and L0B: by fractals (2D), transposed, and as the matrix of a convolution (3D).
#pragma once
#include "asim/api/cube_copy.h"
#include "asim/semantics/cube_load.h"

namespace AscendC {

struct LoadData2DParams {
    LoadData2DParams() = default;
    LoadData2DParams(uint16_t start, uint8_t repeats, uint16_t source_stride, uint8_t sid_value, uint16_t destination_gap,
                     bool transpose, uint8_t address_mode)
        : startIndex(start), dstGap(destination_gap), srcStride(source_stride), ifTranspose(transpose), repeatTimes(repeats),
          sid(sid_value), addrMode(address_mode) {}

    uint16_t startIndex = 0;
    uint16_t dstGap = 0;
    uint16_t srcStride = 0;
    bool ifTranspose = false;
    uint8_t repeatTimes = 0;
    uint8_t sid = 0;
    uint8_t addrMode = 0;
};
using LoadData2dParams = LoadData2DParams;

struct LoadData2dTransposeParams {
    LoadData2dTransposeParams() = default;
    LoadData2dTransposeParams(uint16_t start, uint8_t repeats, uint16_t source_stride, uint16_t destination_gap,
                              uint16_t fractal_gap, uint8_t address_mode = 0)
        : startIndex(start), repeatTimes(repeats), srcStride(source_stride), dstGap(destination_gap), dstFracGap(fractal_gap),
          addrMode(address_mode) {}

    uint16_t startIndex = 0;
    uint8_t repeatTimes = 0;
    uint16_t srcStride = 0;
    uint16_t dstGap = 0;
    uint16_t dstFracGap = 0;
    uint8_t addrMode = 0;
};

constexpr int32_t PAD_SIZE = 4;

template <typename T>
struct LoadData3DParamsV2 {
    LoadData3DParamsV2() = default;
    LoadData3DParamsV2(const uint8_t pads[PAD_SIZE], uint16_t height, uint16_t width, uint16_t channels, uint16_t k_extent,
                       uint16_t m_extent, uint16_t k_start, uint16_t m_start, uint8_t stride_width, uint8_t stride_height,
                       uint8_t filter_width, uint8_t filter_height, uint8_t dilation_width, uint8_t dilation_height,
                       bool transpose, bool small_k, T pad_value, bool wide_filter = false, bool high_filter = false,
                       bool right_matrix = false)
        : l1H(height), l1W(width), channelSize(channels), kExtension(k_extent), mExtension(m_extent), kStartPt(k_start),
          mStartPt(m_start), strideW(stride_width), strideH(stride_height), filterW(filter_width), filterH(filter_height),
          dilationFilterW(dilation_width), dilationFilterH(dilation_height), enTranspose(transpose), enSmallK(small_k),
          padValue(pad_value), filterSizeW(wide_filter), filterSizeH(high_filter), fMatrixCtrl(right_matrix) {
        std::copy_n(pads, PAD_SIZE, padList);
    }

    uint8_t padList[PAD_SIZE] = {0};    // left, right, top, bottom
    uint16_t l1H = 0;
    uint16_t l1W = 0;
    uint16_t channelSize = 0;
    uint16_t kExtension = 0;
    uint16_t mExtension = 0;
    uint16_t kStartPt = 0;
    uint16_t mStartPt = 0;
    uint8_t strideW = 1;
    uint8_t strideH = 1;
    uint8_t filterW = 1;
    uint8_t filterH = 1;
    uint8_t dilationFilterW = 1;
    uint8_t dilationFilterH = 1;
    bool enTranspose = false;
    bool enSmallK = false;
    T padValue = T(0);
    bool filterSizeW = false;
    bool filterSizeH = false;
    bool fMatrixCtrl = false;
};

// Whether a load sets the registers of feature map and padding itself.
struct IsResetLoad3dConfig {
    constexpr IsResetLoad3dConfig(bool map, bool padding) : isSetFMatrix(map), isSetPadding(padding) {}
    bool isSetFMatrix = true;
    bool isSetPadding = true;
};
constexpr IsResetLoad3dConfig IS_RESER_LOAD3D_DEFAULT_CONFIG = {true, true};

enum class FmatrixMode : uint8_t { FMATRIX_LEFT = 0, FMATRIX_RIGHT = 1 };

template <typename T>
__aicore__ inline void LoadData(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LoadData2DParams &params) {
    const int64_t stride = params.addrMode == 0 ? params.srcStride : -int64_t{params.srcStride};
    asim::load_2d(space_of(dst.GetPosition()), dst.bytes(), src.bytes(),
                  {params.startIndex, params.repeatTimes, stride, params.dstGap, sizeof(T), params.ifTranspose});
}

// From global memory, fractals as they lie there.
template <typename T>
__aicore__ inline void LoadData(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const LoadData2DParams &params) {
    constexpr uint64_t kFractalBytes = 512;
    asim::CopyShape shape{params.repeatTimes, kFractalBytes, params.srcStride * kFractalBytes,
                          (uint64_t{params.dstGap} + 1) * kFractalBytes};
    asim::copy_gm_to_l1(asim::CopyCall::LoadData, space_of(dst.GetPosition()), dst.bytes(), src.bytes() + params.startIndex * kFractalBytes,
                        shape, {});
}

template <typename T>
__aicore__ inline void LoadDataWithTranspose(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                                             const LoadData2dTransposeParams &params) {
    const int64_t stride = params.addrMode == 0 ? params.srcStride : -int64_t{params.srcStride};
    asim::load_transposed(space_of(dst.GetPosition()), dst.bytes(), src.bytes(),
                          {params.startIndex, params.repeatTimes, stride, params.dstGap, params.dstFracGap, sizeof(T)});
}

__aicore__ inline void SetFmatrix(uint16_t l1H, uint16_t l1W, const uint8_t padList[PAD_SIZE], const FmatrixMode &fmatrixMode) {
    asim::set_feature_map(fmatrixMode == FmatrixMode::FMATRIX_RIGHT, {l1H, l1W, padList[0], padList[1], padList[2], padList[3]});
}
__aicore__ inline void Load3DSetFMatrix(uint16_t l1H, uint16_t l1W, const uint8_t padList[PAD_SIZE]) {
    SetFmatrix(l1H, l1W, padList, FmatrixMode::FMATRIX_LEFT);
}
// The raw word: width in bits 0 to 15, height in 16 to 31, paddings left, right, top, bottom from bit 32 on.
__aicore__ inline void Load3DSetFMatrixCal(uint16_t l1H, uint16_t l1W, const uint8_t padList[PAD_SIZE]) {
    SetFmatrix(l1H, l1W, padList, FmatrixMode::FMATRIX_LEFT);
}

template <typename T>
__aicore__ inline void SetLoadDataPaddingValue(const T padValue) {
    asim::set_load_padding(asim::bits_of_element(padValue));
}
__aicore__ inline void SetLoadDataBoundary(uint32_t boundaryValue) { asim::set_load_boundary(boundaryValue); }

struct LoadDataRepeatParam {
    LoadDataRepeatParam() = default;
    LoadDataRepeatParam(uint16_t stride, uint8_t repeats, uint8_t mode, uint16_t destination_stride = 0)
        : repeatStride(stride), repeatTime(repeats), repeatMode(mode), dstStride(destination_stride) {}

    uint16_t repeatStride = 0;
    uint8_t repeatTime = 1;
    uint8_t repeatMode = 0;
    uint16_t dstStride = 0;     // Atlas A2 has none
};
__aicore__ inline void SetLoadDataRepeat(const LoadDataRepeatParam &repeatParams) {
    asim::set_load_repeat(repeatParams.repeatTime, repeatParams.repeatStride, repeatParams.repeatMode);
}

template <typename T>
__aicore__ inline void Load3DSetPaddingCal(const T padValue) { SetLoadDataPaddingValue(padValue); }

template <typename T, const IsResetLoad3dConfig &defaultConfig = IS_RESER_LOAD3D_DEFAULT_CONFIG, typename U = T>
__aicore__ inline void LoadData(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LoadData3DParamsV2<U> &params) {
    const auto map = params.fMatrixCtrl ? FmatrixMode::FMATRIX_RIGHT : FmatrixMode::FMATRIX_LEFT;
    if (defaultConfig.isSetFMatrix) SetFmatrix(params.l1H, params.l1W, params.padList, map);
    if (defaultConfig.isSetPadding) SetLoadDataPaddingValue(params.padValue);
    asim::Load3dShape shape;
    shape.right_matrix = params.fMatrixCtrl;
    shape.channels = params.channelSize;
    shape.columns = params.kExtension, shape.rows = params.mExtension;
    shape.first_column = params.kStartPt, shape.first_row = params.mStartPt;
    shape.stride_width = params.strideW, shape.stride_height = params.strideH;
    shape.filter_width = params.filterW + (params.filterSizeW ? 256u : 0u);
    shape.filter_height = params.filterH + (params.filterSizeH ? 256u : 0u);
    shape.dilation_width = params.dilationFilterW, shape.dilation_height = params.dilationFilterH;
    shape.transpose = params.enTranspose;
    shape.element_bytes = sizeof(T);
    asim::load_3d(space_of(dst.GetPosition()), dst.bytes(), src.bytes(), shape);
}

// The same instruction with its numbers packed: extConfig holds kExtension, mExtension, kStartPt and mStartPt in 16 bits each,
// lowest first, filterConfig strides, filter and dilations (width, height each) in eight bits each. The feature map is set before.
struct LoadData3DParamsV2Pro {
    LoadData3DParamsV2Pro() {}
    LoadData3DParamsV2Pro(uint16_t channels, bool transpose, bool small_k, bool wide_filter, bool high_filter, bool right_matrix,
                          uint64_t extents, uint64_t filter)
        : channelSize(channels), enTranspose(transpose), enSmallK(small_k), filterSizeW(wide_filter), filterSizeH(high_filter),
          fMatrixCtrl(right_matrix), extConfig(extents), filterConfig(filter) {}

    uint16_t channelSize = 0;
    bool enTranspose = false;
    bool enSmallK = false;
    bool filterSizeW = false;
    bool filterSizeH = false;
    bool fMatrixCtrl = false;
    uint64_t extConfig = 0;
    uint64_t filterConfig = 0x010101010101;
};

template <typename T>
__aicore__ inline void LoadData(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LoadData3DParamsV2Pro &params) {
    const auto extent = [&](int place) { return static_cast<uint16_t>(params.extConfig >> (16 * place)); };
    const auto small = [&](int place) { return static_cast<uint8_t>(params.filterConfig >> (8 * place)); };
    LoadData3DParamsV2<T> plain;
    plain.channelSize = params.channelSize;
    plain.kExtension = extent(0), plain.mExtension = extent(1), plain.kStartPt = extent(2), plain.mStartPt = extent(3);
    plain.strideW = small(0), plain.strideH = small(1), plain.filterW = small(2), plain.filterH = small(3);
    plain.dilationFilterW = small(4), plain.dilationFilterH = small(5);
    plain.enTranspose = params.enTranspose;
    plain.filterSizeW = params.filterSizeW, plain.filterSizeH = params.filterSizeH, plain.fMatrixCtrl = params.fMatrixCtrl;
    static constexpr IsResetLoad3dConfig kKeepsMap{false, false};
    LoadData<T, kKeepsMap>(dst, src, plain);
}

template <typename T, typename Index, typename Params>
__aicore__ inline void LoadDataWithSparse(const LocalTensor<T> &, const LocalTensor<T> &, const LocalTensor<Index> &, const Params &) {
    static_assert(sizeof(T) == 0, "LoadDataWithSparse: sparse products are not simulated");
}

}  // namespace AscendC
