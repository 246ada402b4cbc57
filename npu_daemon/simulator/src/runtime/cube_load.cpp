#include "asim/semantics/cube_load.h"

#include <algorithm>
#include <cstring>

#include "asim/check/check.h"
#include "asim/check/copy_bounds.h"
#include "asim/machine/block.h"
#include "asim/trace/writer.h"

namespace asim {

namespace {

constexpr uint32_t kFractalBytes = 512;
constexpr uint32_t kRows = 16;

uint32_t round_up(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit * unit; }

void emit_load(Space space, uint32_t fractals, uint32_t element_bytes, uint64_t dst, uint64_t dst_bytes, uint64_t src, uint64_t src_bytes) {
    Record record{};
    record.op = space == Space::L0A ? Op::LoadL0A : Op::LoadL0B;
    record.dtype_bytes = static_cast<uint8_t>(element_bytes);
    record.repeats = fractals;
    record.burst_bytes = kFractalBytes;
    emit(record, {{dst, static_cast<uint64_t>(space), static_cast<uint32_t>(dst_bytes), 0},
                  {src, static_cast<uint64_t>(Space::L1), static_cast<uint32_t>(src_bytes), 0}});
}

// Offset of the lowest of `count` places `stride` apart, in the same units, and their extent of `size` each.
struct Range {
    int64_t first;
    uint64_t extent;
};
Range range_of(int64_t start, uint32_t count, int64_t stride, uint64_t size) {
    const int64_t last = start + (count - 1) * stride;
    return {std::min(start, last), static_cast<uint64_t>(std::max(start, last) - std::min(start, last)) + size};
}

void transpose_fractal(uint8_t *dst, const uint8_t *src) {
    const auto *from = reinterpret_cast<const uint16_t *>(src);
    auto *to = reinterpret_cast<uint16_t *>(dst);
    for (uint32_t row = 0; row < kRows; ++row) {
        for (uint32_t column = 0; column < kRows; ++column) to[column * kRows + row] = from[row * kRows + column];
    }
}

void check_target(const char *call, Space space) {
    if (space == Space::L0A || space == Space::L0B) return;
    fault(FaultKind::RuntimeFault, call, "dst must lie in L0A or L0B, and lies in %s: check the tensor's position", memory_name(space));
}

// Numbers of an instruction that has 16 bits for each.
void check_loads(const char *call, uint32_t start, uint32_t repeats, int64_t stride, uint32_t gap) {
    check_bursts(call, {start, repeats, gap, static_cast<uint64_t>(stride < 0 ? -(stride + 1) : stride)}, {});
}

void check_element_width(const char *call, uint32_t element_bytes) {
    if (element_bytes == 1 || element_bytes == 2 || element_bytes == 4) return;
    fault(FaultKind::RuntimeFault, call, "elements have 1, 2 or 4 bytes, these have %u", element_bytes);
}

// Where element (row, column) of a square lies within its fractals, for one, two and four bytes.
uint32_t square_offset(uint32_t row, uint32_t column, uint32_t element_bytes, uint32_t fractal_stride) {
    const uint32_t width = kUbBlockBytes / element_bytes;
    if (element_bytes == 4) return column / width * fractal_stride + row * kUbBlockBytes + column % width * element_bytes;
    return row / kRows * fractal_stride + row % kRows * kUbBlockBytes + column * element_bytes;
}

void transpose_square(uint8_t *dst, const uint8_t *src, const LoadSquaresShape &shape) {
    const uint32_t side = shape.element_bytes == 1 ? 32 : kRows;
    const uint32_t dst_stride = (shape.dst_fractal_gap + 1) * kFractalBytes;
    for (uint32_t row = 0; row < side; ++row) {
        for (uint32_t column = 0; column < side; ++column) {
            std::memcpy(dst + square_offset(column, row, shape.element_bytes, dst_stride),
                        src + square_offset(row, column, shape.element_bytes, kFractalBytes), shape.element_bytes);
        }
    }
}

const FeatureMap &map_of(const Load3dShape &shape) { return block().cube.maps[shape.right_matrix ? 1 : 0]; }

void check_convolution(const Load3dShape &shape) {
    constexpr const char *kCall = "LoadData(3D)";
    check_element_width(kCall, shape.element_bytes);
    const FeatureMap &map = map_of(shape);
    for (const uint32_t number : {shape.channels, shape.columns, shape.rows, shape.first_column, shape.first_row, map.height, map.width,
                                  shape.stride_width, shape.stride_height, shape.filter_width, shape.filter_height, shape.dilation_width,
                                  shape.dilation_height}) {
        if (number > UINT16_MAX) fault(FaultKind::RuntimeFault, kCall, "a number of %u: all of them have 16 bits", number);
    }
    if (shape.stride_width == 0 || shape.stride_height == 0 || shape.filter_width == 0 || shape.filter_height == 0) {
        fault(FaultKind::RuntimeFault, kCall, "strides of %u and %u, a filter of %u x %u: expected at least 1", shape.stride_width, shape.stride_height,
              shape.filter_width, shape.filter_height);
    }
}

// Reads elements of the matrix of a convolution.
class Patches {
public:
    Patches(const uint8_t *l1, const Load3dShape &shape) : l1_(l1), shape_(shape), lanes_(kUbBlockBytes / shape.element_bytes), map_(map_of(shape)) {
        const uint32_t padded = map_.width + map_.pad_left + map_.pad_right;
        const uint32_t reach = (shape.filter_width - 1) * shape.dilation_width + 1;
        out_width_ = padded < reach ? 1 : (padded - reach) / shape.stride_width + 1;
    }

    // Bytes of the feature map in L1.
    uint64_t bytes() const { return uint64_t{(shape_.channels + lanes_ - 1) / lanes_} * map_.height * map_.width * kUbBlockBytes; }

    // The 32 B of channels at a row and a block of columns, or null where the padding is.
    const uint8_t *block(uint32_t row, uint32_t column_block) const {
        const uint32_t taps = shape_.filter_width * shape_.filter_height;
        const uint32_t tap = column_block % taps;
        const int64_t y = int64_t{row / out_width_} * shape_.stride_height + tap / shape_.filter_width * shape_.dilation_height -
                          map_.pad_top;
        const int64_t x = int64_t{row % out_width_} * shape_.stride_width + tap % shape_.filter_width * shape_.dilation_width -
                          map_.pad_left;
        if (y < 0 || x < 0 || y >= map_.height || x >= map_.width) return nullptr;
        const uint64_t offset = ((uint64_t{column_block / taps} * map_.height + y) * map_.width + x) * kUbBlockBytes;
        if (offset + kUbBlockBytes > bytes()) {
            fault(FaultKind::RuntimeFault, "LoadData(3D)", "column block %u lies beyond the %u channels: kStartPt and kExtension name more than there are",
                  column_block, shape_.channels);
        }
        const CubeRegisters &cube = block_registers();
        if (cube.load_boundary == 0) return l1_ + offset;
        const uint8_t *const start = asim::block().memories[static_cast<int>(Space::L1)].base;
        const auto place = static_cast<uint64_t>(l1_ - start) + offset;
        return place < cube.load_boundary ? l1_ + offset : start + place % cube.load_boundary;
    }

    uint32_t lanes() const { return lanes_; }

private:
    static const CubeRegisters &block_registers() { return asim::block().cube; }

    const uint8_t *l1_;
    const Load3dShape &shape_;
    uint32_t lanes_;
    FeatureMap map_;
    uint32_t out_width_;
};

// Where element (row, column) of the loaded part goes.
uint64_t target_offset(Space space, const Load3dShape &shape, uint32_t lanes, uint32_t row, uint32_t column) {
    const uint32_t rows = round_up(shape.rows, kRows);
    const uint32_t columns = round_up(shape.columns, lanes);
    uint64_t outer, fractal_row, lane;
    if (space == Space::L0B) {
        outer = uint64_t{row / lanes} * (round_up(columns, kRows) / kRows) + column / kRows;
        fractal_row = column % kRows, lane = row % lanes;
    } else if (shape.transpose) {
        outer = uint64_t{column / kRows} * (rows / lanes) + row / lanes;
        fractal_row = column % kRows, lane = row % lanes;
    } else {
        outer = uint64_t{row / kRows} * (columns / lanes) + column / lanes;
        fractal_row = row % kRows, lane = column % lanes;
    }
    return outer * kFractalBytes + fractal_row * kUbBlockBytes + lane * shape.element_bytes;
}

}  // namespace

void load_2d(Space space, uint8_t *dst, const uint8_t *l1, Load2dShape shape) {
    constexpr const char *call = "LoadData(2D)";
    if (!on_cube_core() || shape.repeats == 0) return;
    check_loads(call, shape.start, shape.repeats, shape.src_stride, shape.dst_gap);
    check_target(call, space);
    const Range src = range_of(int64_t{shape.start} * kFractalBytes, shape.repeats, shape.src_stride * kFractalBytes, kFractalBytes);
    const uint64_t dst_stride = (uint64_t{shape.dst_gap} + 1) * kFractalBytes;
    const uint64_t dst_bytes = (shape.repeats - 1) * dst_stride + kFractalBytes;
    const uint64_t origin = checked_local(call, "src", Space::L1, l1 + src.first, src.extent, kUbBlockBytes);
    const uint64_t offset = checked_local(call, "dst", space, dst, dst_bytes, kFractalBytes);
    if (shape.transpose && shape.element_bytes != 2) {
        fault(FaultKind::RuntimeFault, call, "ifTranspose takes elements of 2 bytes, these have %u: use LoadDataWithTranspose", shape.element_bytes);
    }
    for (uint32_t i = 0; i < shape.repeats; ++i) {
        const uint8_t *from = l1 + (int64_t{shape.start} + i * shape.src_stride) * kFractalBytes;
        uint8_t *to = dst + i * dst_stride;
        if (shape.transpose) {
            transpose_fractal(to, from);
        } else {
            std::memcpy(to, from, kFractalBytes);
        }
    }
    emit_load(space, shape.repeats, shape.element_bytes, offset, dst_bytes, origin, src.extent);
}

void load_transposed(Space space, uint8_t *dst, const uint8_t *l1, LoadSquaresShape shape) {
    constexpr const char *kCall = "LoadDataWithTranspose";
    if (!on_cube_core() || shape.repeats == 0) return;
    check_target(kCall, space);
    check_loads(kCall, shape.start, shape.repeats, shape.src_stride, shape.dst_gap);
    check_loads(kCall, 0, 0, 0, shape.dst_fractal_gap);
    check_element_width(kCall, shape.element_bytes);
    const uint32_t fractals = shape.element_bytes == 2 ? 1 : 2;
    const uint64_t square = fractals * kFractalBytes;
    const Range src = range_of(int64_t{shape.start} * static_cast<int64_t>(square), shape.repeats,
                               shape.src_stride * static_cast<int64_t>(square), square);
    const uint64_t dst_stride = (uint64_t{shape.dst_gap} + 1) * kFractalBytes;
    const uint64_t square_span = (fractals - 1) * (uint64_t{shape.dst_fractal_gap} + 1) * kFractalBytes + kFractalBytes;
    const uint64_t dst_bytes = (shape.repeats - 1) * dst_stride + square_span;
    const uint64_t origin = checked_local(kCall, "src", Space::L1, l1 + src.first, src.extent, kUbBlockBytes);
    const uint64_t offset = checked_local(kCall, "dst", space, dst, dst_bytes, kFractalBytes);
    for (uint32_t i = 0; i < shape.repeats; ++i) {
        const int64_t from = (int64_t{shape.start} + i * shape.src_stride) * static_cast<int64_t>(square);
        transpose_square(dst + i * dst_stride, l1 + from, shape);
    }
    emit_load(space, shape.repeats * fractals, shape.element_bytes, offset, dst_bytes, origin, src.extent);
}

namespace {

// One repeat; returns how many bytes it has written.
uint64_t load_3d_once(Space space, uint8_t *dst, const uint8_t *l1, const Load3dShape &shape) {
    constexpr const char *kCall = "LoadData(3D)";
    check_convolution(shape);
    const Patches patches(l1, shape);
    const uint32_t lanes = patches.lanes();
    const uint32_t rows = round_up(shape.rows, kRows);
    const uint32_t columns = round_up(shape.columns, lanes);
    const uint64_t dst_bytes = target_offset(space, shape, lanes, rows - 1, columns - 1) + shape.element_bytes;
    const uint64_t src_bytes = patches.bytes();
    const uint64_t origin = checked_local(kCall, "src", Space::L1, l1, src_bytes, kUbBlockBytes);
    const uint64_t offset = checked_local(kCall, "dst", space, dst, dst_bytes, kFractalBytes);
    uint8_t padding[kUbBlockBytes];
    for (uint32_t i = 0; i < lanes; ++i) std::memcpy(padding + i * shape.element_bytes, &block().cube.pad_value, shape.element_bytes);
    const bool whole_blocks = space == Space::L0A && !shape.transpose;
    for (uint32_t row = 0; row < rows; ++row) {
        for (uint32_t column = 0; column < columns; column += lanes) {
            const uint8_t *found = patches.block(shape.first_row + row, (shape.first_column + column) / lanes);
            const uint8_t *from = found == nullptr ? padding : found;
            if (whole_blocks) {
                std::memcpy(dst + target_offset(space, shape, lanes, row, column), from, kUbBlockBytes);
                continue;
            }
            for (uint32_t lane = 0; lane < lanes; ++lane) {
                std::memcpy(dst + target_offset(space, shape, lanes, row, column + lane), from + lane * shape.element_bytes, shape.element_bytes);
            }
        }
    }
    emit_load(space, static_cast<uint32_t>((dst_bytes + kFractalBytes - 1) / kFractalBytes), shape.element_bytes, offset, dst_bytes, origin, src_bytes);
    return (dst_bytes + kFractalBytes - 1) / kFractalBytes * kFractalBytes;
}

// Paths that the page excludes by element type.
void check_3d_path(Space space, const Load3dShape &shape) {
    constexpr const char *kCall = "LoadData(3D)";
    check_target(kCall, space);
    if (space == Space::L0B && shape.element_bytes == 1) {
        fault(FaultKind::RuntimeFault, kCall, "elements of 1 byte do not go from L1 to L0B: this path takes those of 2 and 4 bytes");
    }
    if (space == Space::L0A && shape.transpose && shape.element_bytes == 1) {
        fault(FaultKind::RuntimeFault, kCall, "enTranspose on the way to L0A takes elements of 2 and 4 bytes, these have 1");
    }
    // The last block of channels holds all of them, or 4, 8 or 16 where that is less.
    const uint32_t left = shape.channels % (kUbBlockBytes / std::max(shape.element_bytes, 1u));
    if (left != 0 && left != 4 && left != 8 && left != 16) {
        fault(FaultKind::RuntimeFault, kCall, "channelSize is %u: expected whole blocks of %u channels, and 4, 8 or 16 more", shape.channels,
              kUbBlockBytes / shape.element_bytes);
    }
}

}  // namespace

void load_3d(Space space, uint8_t *dst, const uint8_t *l1, Load3dShape shape) {
    if (!on_cube_core() || shape.rows == 0 || shape.columns == 0) return;
    const FeatureMap &map = map_of(shape);
    if (map.height == 0 || map.width == 0 || shape.channels == 0 || shape.filter_width == 0 || shape.filter_height == 0) return;   // as documented
    check_3d_path(space, shape);
    const CubeRegisters registers = block().cube;
    for (uint32_t repeat = 0; repeat < registers.load_repeats; ++repeat) {
        dst += load_3d_once(space, dst, l1, shape);
        const uint32_t unit = registers.load_along_width ? kUbBlockBytes / shape.element_bytes : kRows;
        (registers.load_along_width ? shape.first_column : shape.first_row) += registers.load_stride * unit;
    }
}

}  // namespace asim
