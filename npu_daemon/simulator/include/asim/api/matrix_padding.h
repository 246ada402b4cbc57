// Pad and UnPad of matrices, and TransData between NCDHW and the formats in blocks of 16 channels. Compositions of our own.
#pragma once
#include "asim/api/layout.h"
#include "asim/api/matrix_transposition.h"
#include "asim/api/norm_gradients.h"
#include "asim/api/vector_index.h"

struct alignas(8) PadTiling {
    uint32_t srcHeight, srcWidth, srcOriWidth;
};
struct alignas(8) UnPadTiling {
    uint32_t srcHeight, srcWidth;
};
namespace AscendC::tiling {
using ::PadTiling;
using ::UnPadTiling;
}

namespace AscendC {

struct PadParams {
    uint16_t leftPad = 0;
    uint16_t rightPad = 0;
    int32_t padValue = 0;
};
struct UnPadParams {
    uint16_t leftPad = 0;
    uint16_t rightPad = 0;
};

namespace composed_calls {

// Elements [begin, end) of each row of `width` become `value`; they lie in one data block.
template <typename T>
void fill_columns(const LocalTensor<T> &rows, uint32_t height, uint32_t width, uint32_t begin, uint32_t end, T value) {
    constexpr uint32_t block = asim::kUbBlockBytes / sizeof(T);
    if (begin >= end) return;
    const uint32_t first = begin / block * block;
    uint64_t mask[2] = {((1ull << (end - begin)) - 1) << (begin - first), 0};
    in_rounds(height, MAX_REPEAT_TIMES, [&](uint32_t done, uint32_t number) {
        if (width / block <= UINT8_MAX) {
            Duplicate(rows[done * width + first], value, mask, static_cast<uint8_t>(number), 1, static_cast<uint8_t>(width / block));
            return;
        }
        for (uint32_t row = 0; row < number; ++row) Duplicate(rows[(done + row) * width + first], value, mask, 1, 1, 8);
    });
    ResetMask();
    PipeBarrier<PIPE_V>();
}

template <typename T>
constexpr void require_paddable() {
    static_assert(asim::contains<T, asim::TypeList<int16_t, uint16_t, half, int32_t, uint32_t, float>>::value,
                  "Pad and UnPad take int16_t, uint16_t, half, int32_t, uint32_t and float");
}

}  // namespace composed_calls

template <typename T>
__aicore__ inline void Pad(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor, PadParams &padParams,
                           const LocalTensor<uint8_t> &sharedTmpBuffer, PadTiling &tiling) {
    using namespace composed_calls;
    require_paddable<T>();
    constexpr ComposedCall call = ComposedCall::Pad;
    constexpr uint32_t block = asim::kUbBlockBytes / sizeof(T);
    const uint32_t height = tiling.srcHeight, own = tiling.srcOriWidth, left = padParams.leftPad;
    const uint32_t width = (tiling.srcWidth + block - 1) / block * block, end = left + own;
    const auto value = static_cast<T>(padParams.padValue);
    asim::check_matrix(call, {height, width});
    asim::check_demand(call, Demand::AboveZero, height, 0);
    asim::check_demand(call, Demand::AboveZero, own, 0);
    asim::check_demand(call, Demand::Most, end + padParams.rightPad, width, Quantity::PaddedWidth);
    const bool aligned = tiling.srcWidth == width;
    if (aligned) {
        asim::check_demand(call, Demand::Equal, left, 0, Quantity::LeftPad);
        asim::check_demand(call, Demand::Least, width - own, 1, Quantity::PaddedColumns);
        DataCopy(dstTensor, srcTensor, height * width);
        PipeBarrier<PIPE_V>();
    } else {
        asim::check_demand(call, Demand::Multiple, height * own * static_cast<uint32_t>(sizeof(T)), asim::kUbBlockBytes, Quantity::SourceBytes);
        asim::check_scratch(call, bytes_of(sharedTmpBuffer), uint64_t{width} * sizeof(int32_t));
        const LocalTensor<int32_t> offsets = sharedTmpBuffer.template ReinterpretCast<int32_t>();
        const Steps<int32_t> columns(width);
        CreateVecIndex(offsets, -static_cast<int32_t>(left), width);
        PipeBarrier<PIPE_V>();
        columns.maxs(offsets, offsets, 0);
        columns.mins(offsets, offsets, static_cast<int32_t>(own) - 1);
        columns.muls(offsets, offsets, static_cast<int32_t>(sizeof(T)));
        for (uint32_t row = 0; row < height; ++row) {
            Gather(dstTensor[row * width], srcTensor, offsets.template ReinterpretCast<uint32_t>(), row * own * static_cast<uint32_t>(sizeof(T)), width);
        }
        PipeBarrier<PIPE_V>();
        fill_columns(dstTensor, height, width, 0, left, value);
    }
    for (uint32_t begin = end; begin < width; begin = (begin / block + 1) * block) {
        const uint32_t next = (begin / block + 1) * block;
        fill_columns(dstTensor, height, width, begin, next < width ? next : width, value);
    }
}
template <typename T>
__aicore__ inline void Pad(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor, PadParams &padParams, PadTiling &tiling) {
    Pad(dstTensor, srcTensor, padParams, composed_calls::free_scratch(), tiling);
}

// Rows without their last columns, one behind the other. As many rows at a time as make whole data blocks, by offsets that the scalar
// unit writes once.
template <typename T>
__aicore__ inline void UnPad(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor, UnPadParams &unPadParams,
                             const LocalTensor<uint8_t> &sharedTmpBuffer, UnPadTiling &tiling) {
    using namespace composed_calls;
    require_paddable<T>();
    constexpr ComposedCall call = ComposedCall::UnPad;
    constexpr uint32_t block = asim::kUbBlockBytes / sizeof(T);
    const uint32_t height = tiling.srcHeight, width = tiling.srcWidth;
    asim::check_matrix(call, {height, width});
    asim::check_demand(call, Demand::WholeBlocks, width * static_cast<uint32_t>(sizeof(T)), 0);
    asim::check_demand(call, Demand::AboveZero, unPadParams.rightPad, 0, Quantity::RightPad);
    asim::check_demand(call, Demand::Most, unPadParams.rightPad, block - 1, Quantity::RightPad);
    const uint32_t own = width - unPadParams.rightPad, elems = block * own;
    asim::check_scratch(call, bytes_of(sharedTmpBuffer), uint64_t{elems} * sizeof(uint32_t));
    const LocalTensor<uint32_t> offsets = sharedTmpBuffer.template ReinterpretCast<uint32_t>();
    const uint32_t rows = height < block ? height : block;
    for (uint32_t row = 0; row < rows; ++row) {
        for (uint32_t column = 0; column < own; ++column) {
            offsets.SetValue(row * own + column, (row * width + column) * static_cast<uint32_t>(sizeof(T)));
        }
    }
    await<HardEvent::S_V>();
    in_rounds(height, block, [&](uint32_t done, uint32_t number) {
        Gather(dstTensor[done * own], srcTensor, offsets, done * width * static_cast<uint32_t>(sizeof(T)), number * own);
    });
    PipeBarrier<PIPE_V>();
}
template <typename T>
__aicore__ inline void UnPad(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor, UnPadParams &unPadParams, UnPadTiling &tiling) {
    UnPad(dstTensor, srcTensor, unPadParams, composed_calls::free_scratch(), tiling);
}

struct TransDataConfig {
    DataFormat srcFormat;
    DataFormat dstFormat;
};
template <typename T, typename U>
struct TransDataParams {
    T srcLayout;
    U dstLayout;
};

namespace composed_calls {

constexpr uint32_t kChannels = 16;      // of a block, and rows of N

struct VolumeExtents {
    uint32_t n, c, d, h, w;
    uint32_t area() const { return h * w; }
    uint32_t padded_area() const { return (area() + kChannels - 1) / kChannels * kChannels; }
    uint32_t channel_blocks() const { return (c + kChannels - 1) / kChannels; }
    uint32_t padded_n() const { return (n + kChannels - 1) / kChannels * kChannels; }
};

template <typename Shape>
VolumeExtents volume_of(const Shape &shape) {
    static_assert(std::tuple_size_v<Shape> == 5, "TransData: the shape of NCDHW has five extents");
    return {static_cast<uint32_t>(std::get<0>(shape)), static_cast<uint32_t>(std::get<1>(shape)), static_cast<uint32_t>(std::get<2>(shape)),
            static_cast<uint32_t>(std::get<3>(shape)), static_cast<uint32_t>(std::get<4>(shape))};
}

// Where pixel `p` of the channels of a block lies, counted in channels' blocks of 16 elements.
struct BlockPlace {
    uint32_t first, pixel_step;
    uint32_t at(uint32_t pixel) const { return first + pixel * pixel_step; }
};

inline BlockPlace place_of(const VolumeExtents &v, bool fractals, uint32_t n, uint32_t d, uint32_t c1) {
    if (fractals) return {(d * v.channel_blocks() + c1) * v.area() * v.padded_n() + n, v.padded_n()};
    return {((n * v.d + d) * v.channel_blocks() + c1) * v.area(), 1};
}

// 16 channels of 16 pixels each with an instruction, through the scratch buffer: [pixel][channel] of the squares at hand.
template <typename T>
void to_blocks(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &square, const VolumeExtents &v, const BlockPlace &place,
               uint32_t n, uint32_t d, uint32_t c1) {
    uint64_t from[kTransposedRows], to[kTransposedRows];
    const uint32_t zeros = kChannels * kChannels;
    for (uint32_t pixel = 0; pixel < v.area(); pixel += kChannels) {
        for (uint32_t i = 0; i < kChannels; ++i) {
            const uint32_t c = c1 * kChannels + i;
            from[i] = c < v.c ? address_of(src, ((n * v.c + c) * v.d + d) * v.padded_area() + pixel) : address_of(square, zeros);
            to[i] = address_of(square, i * kChannels);
        }
        TransDataTo5HD<T>(to, from, TransDataTo5HDParams(false, false, 1, 0, 0));
        PipeBarrier<PIPE_V>();
        const uint32_t pixels = v.area() - pixel < kChannels ? v.area() - pixel : kChannels;
        DataCopy(dst[place.at(pixel) * kChannels], square,
                 DataCopyParams(static_cast<uint16_t>(pixels), 1, 0, static_cast<uint16_t>(place.pixel_step - 1)));
        PipeBarrier<PIPE_V>();
    }
}

template <typename T>
void from_blocks(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &square, const VolumeExtents &v, const BlockPlace &place,
                 uint32_t n, uint32_t d, uint32_t c1) {
    uint64_t from[kTransposedRows], to[kTransposedRows];
    for (uint32_t pixel = 0; pixel < v.area(); pixel += kChannels) {
        for (uint32_t i = 0; i < kChannels; ++i) {
            const uint32_t c = c1 * kChannels + i, p = pixel + i < v.area() ? pixel + i : v.area() - 1;
            from[i] = address_of(src, place.at(p) * kChannels);
            to[i] = c < v.c ? address_of(dst, ((n * v.c + c) * v.d + d) * v.padded_area() + pixel) : address_of(square, i * kChannels);
        }
        TransDataTo5HD<T>(to, from, TransDataTo5HDParams(false, false, 1, 0, 0));
    }
    PipeBarrier<PIPE_V>();
}

}  // namespace composed_calls

template <const TransDataConfig &config, typename T, typename U, typename S>
__aicore__ inline void TransData(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor, const LocalTensor<uint8_t> &sharedTmpBuffer,
                                 const TransDataParams<U, S> &params) {
    using namespace composed_calls;
    constexpr bool packs = config.srcFormat == DataFormat::NCDHW;
    constexpr DataFormat blocks = packs ? config.dstFormat : config.srcFormat;
    static_assert((packs || config.dstFormat == DataFormat::NCDHW) && (blocks == DataFormat::NDC1HWC0 || blocks == DataFormat::FRACTAL_Z_3D),
                  "TransData goes between NCDHW and NDC1HWC0 or FRACTAL_Z_3D");
    static_assert(asim::contains<T, asim::TypeList<int16_t, uint16_t, half, bfloat16_t>>::value, "TransData takes int16_t, uint16_t, half and bfloat16_t");
    constexpr ComposedCall call = ComposedCall::TransData;
    VolumeExtents v{};
    if constexpr (packs) v = volume_of(params.srcLayout.GetShape());
    else v = volume_of(params.dstLayout.GetShape());
    for (const uint32_t extent : {v.n, v.c, v.d, v.h, v.w}) asim::check_demand(call, Demand::AboveZero, extent, 0);
    asim::check_matrix(call, {v.n * v.c * v.d, v.padded_area()});
    const uint32_t plain = v.n * v.c * v.d * v.padded_area();
    const uint32_t blocked = (blocks == DataFormat::FRACTAL_Z_3D ? v.padded_n() : v.n) * v.d * v.channel_blocks() * v.area() * kChannels;
    asim::check_operands(LibraryContract::TransData, dstTensor.bytes(), uint64_t{packs ? blocked : plain} * sizeof(T), srcTensor.bytes(),
                         uint64_t{packs ? plain : blocked} * sizeof(T));
    asim::check_beside_scratch(LibraryContract::TransData, dstTensor.bytes(), uint64_t{packs ? blocked : plain} * sizeof(T), sharedTmpBuffer.bytes(),
                               sharedTmpBuffer.GetSize());
    asim::check_beside_scratch(LibraryContract::TransData, srcTensor.bytes(), uint64_t{packs ? plain : blocked} * sizeof(T), sharedTmpBuffer.bytes(),
                               sharedTmpBuffer.GetSize());
    asim::check_scratch(call, bytes_of(sharedTmpBuffer), uint64_t{kChannels + 1} * kChannels * sizeof(T));
    const LocalTensor<T> square = sharedTmpBuffer.template ReinterpretCast<T>();
    constexpr bool fractals = blocks == DataFormat::FRACTAL_Z_3D;
    if constexpr (packs) {
        Duplicate(square[kChannels * kChannels].template ReinterpretCast<int16_t>(), int16_t{0}, static_cast<int32_t>(kChannels));
        if (fractals && v.n != v.padded_n()) Duplicate(dstTensor.template ReinterpretCast<int16_t>(), int16_t{0}, static_cast<int32_t>(blocked));
        PipeBarrier<PIPE_V>();
    }
    for (uint32_t n = 0; n < v.n; ++n) {
        for (uint32_t d = 0; d < v.d; ++d) {
            for (uint32_t c1 = 0; c1 < v.channel_blocks(); ++c1) {
                const BlockPlace place = place_of(v, fractals, n, d, c1);
                if constexpr (packs) to_blocks(dstTensor, srcTensor, square, v, place, n, d, c1);
                else from_blocks(dstTensor, srcTensor, square, v, place, n, d, c1);
            }
        }
    }
}
template <const TransDataConfig &config, typename T, typename U, typename S>
__aicore__ inline void TransData(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor, const TransDataParams<U, S> &params) {
    TransData<config>(dstTensor, srcTensor, composed_calls::free_scratch(), params);
}

}  // namespace AscendC
