// Broadcasting, sums over rows and selection by bytes, composed of basic instructions.
#include "asim/semantics/rows.h"

#include <algorithm>

#include "asim/check/operand_overlap.h"
#include "asim/machine/call_sync.h"
#include "asim/semantics/copy.h"
#include "asim/semantics/gather.h"
#include "asim/semantics/reduce.h"
#include "asim/semantics/steps.h"
#include "row_bounds.h"
#include "spread_rows.h"

namespace asim {

namespace {

constexpr uint32_t kBlocksPerRepeat = kRepeatBytes / kUbBlockBytes;
constexpr uint32_t kMostRepeats = 255;
constexpr uint8_t kAllElements = 7;         // pattern of GatherMask

template <typename Bits>
uint32_t blocks_of(uint32_t elements) {
    return (elements * static_cast<uint32_t>(sizeof(Bits)) + kUbBlockBytes - 1) / kUbBlockBytes;
}

uint8_t *mutable_bytes(const uint8_t *bytes) { return const_cast<uint8_t *>(bytes); }

// Rows that start at data blocks become rows that follow each other.
template <typename Bits>
void pack_rows(uint8_t *dst, uint8_t *padded, Matrix shape) {
    GatherPattern all;
    all.fixed = kAllElements;
    gather_mask<Bits>(dst, {padded, 1, blocks_of<Bits>(shape.columns)}, all, shape.columns, shape.rows);
}

// Each row of `blocks` data blocks is filled from one block with the element in all lanes: as many rows in one instruction as
// it has repeats (asc-devkit, adv_api/detail/pad/broadcast: the counter of elements is that of a row).
template <typename Bits>
void spread_blocks(uint8_t *dst, uint8_t *blocks, uint32_t rows, uint32_t blocks_per_row) {
    for (uint32_t done = 0; done < rows; done += kMostRepeats) {
        const uint32_t count = std::min(rows - done, kMostRepeats);
        spread_rows<Bits>(dst + uint64_t{done} * blocks_per_row * kUbBlockBytes, blocks + done * kUbBlockBytes, count, blocks_per_row);
    }
}

}  // namespace

template <typename Bits>
void broadcast_columns(uint8_t *dst, const uint8_t *src, Matrix shape, Scratch scratch) {
    const LibraryCall call;
    check_rows("BroadCast", shape.rows, shape.columns);
    check_contract(LibraryContract::BroadCast, {dst, uint64_t{shape.rows} * shape.columns * sizeof(Bits)}, {{src, shape.rows * sizeof(Bits)}});
    const uint32_t blocks = blocks_of<Bits>(shape.columns);
    const bool packed = uint64_t{blocks} * kUbBlockBytes == uint64_t{shape.columns} * sizeof(Bits);
    // Eight rows at a time: their elements spread to blocks, and for odd lengths the padded rows.
    const uint64_t row_bytes = kUbBlockBytes * (1 + (packed ? 0 : uint64_t{blocks}));
    constexpr uint32_t step = sizeof(uint32_t) / sizeof(Bits);  // groups whose elements fill a data block of the source
    const auto groups = static_cast<uint32_t>(scratch.bytes / (row_bytes * kBlocksPerRepeat)) / step * step;
    if (groups == 0) too_little("BroadCast", scratch, row_bytes * kBlocksPerRepeat * step);
    for (uint32_t done = 0; done < shape.rows;) {
        const uint32_t rows = std::min(shape.rows - done, groups * kBlocksPerRepeat);
        const uint32_t repeats = (rows + kBlocksPerRepeat - 1) / kBlocksPerRepeat;
        uint8_t *to = dst + uint64_t{done} * shape.columns * sizeof(Bits);
        uint8_t *padded = packed ? to : scratch.base + uint64_t{groups} * kRepeatBytes;
        broadcast_blocks<Bits>({scratch.base}, src + done * sizeof(Bits), repeats);
        spread_blocks<Bits>(padded, scratch.base, rows, blocks);
        if (!packed) pack_rows<Bits>(to, padded, {rows, shape.columns});
        done += rows;
    }
}

template <typename Bits>
void broadcast_rows(uint8_t *dst, const uint8_t *src, Matrix shape, Scratch scratch) {
    const LibraryCall call;
    check_rows("BroadCast", shape.rows, shape.columns);
    if (shape.columns == 0) return;
    check_contract(LibraryContract::BroadCast, {dst, uint64_t{shape.rows} * shape.columns * sizeof(Bits)}, {{src, shape.columns * sizeof(Bits)}});
    const uint32_t bytes = blocks_of<Bits>(shape.columns) * kUbBlockBytes;
    const bool packed = bytes == shape.columns * sizeof(Bits);
    uint32_t at_once = packed ? shape.rows : std::min(shape.rows, scratch.bytes / bytes);
    constexpr uint32_t step = kUbBlockBytes / sizeof(Bits);     // rows that end at a data block, whatever their length
    if (at_once < shape.rows && uint64_t{at_once} * shape.columns % step != 0) at_once = at_once / step * step;
    if (at_once == 0) too_little("BroadCast", scratch, uint64_t{bytes} * std::min(shape.rows, step));
    for (uint32_t done = 0; done < shape.rows;) {
        const uint32_t rows = std::min(shape.rows - done, at_once);
        uint8_t *to = dst + uint64_t{done} * shape.columns * sizeof(Bits);
        uint8_t *padded = packed ? to : scratch.base;
        copy_ub_to_ub(padded, src, rows, bytes, bytes, 0);
        if (!packed) pack_rows<Bits>(to, padded, {rows, shape.columns});
        done += rows;
    }
}

namespace {

template <typename T>
void check_sums(LibraryContract call, const uint8_t *dst, const uint8_t *src, Matrix shape, uint32_t stride) {
    const bool sum = call == LibraryContract::Sum;
    check_range(sum ? ParameterRange::SumBlocks : ParameterRange::MeanBlocks, int64_t{stride} * static_cast<int64_t>(sizeof(T)));
    check_range(sum ? ParameterRange::SumCount : ParameterRange::MeanCount, shape.columns);
    if (shape.columns > stride) fault(FaultKind::RuntimeFault, sum ? "Sum" : "Mean", "n is %u, more than the %u elements of inner", shape.columns, stride);
    check_contract(call, {dst, shape.rows * sizeof(T)}, {{src, uint64_t{shape.rows} * std::max(stride, shape.columns) * sizeof(T)}});
}

}  // namespace

namespace {

template <typename T>
void add_up_rows(uint8_t *dst, const uint8_t *src, Matrix shape, uint32_t stride, Scratch scratch) {
    check_rows("Sum", shape.rows, std::max(shape.columns, stride));
    constexpr uint32_t lanes = kRepeatBytes / sizeof(T);
    for (uint32_t row = 0; row < shape.rows; ++row) {
        uint8_t *from = mutable_bytes(src) + uint64_t{row} * stride * sizeof(T);
        uint32_t left = shape.columns;
        while (left > lanes) {      // each pass leaves one sum a repeat, the last of them of what is left
            const uint32_t sums = (left + lanes - 1) / lanes;
            if (sums * sizeof(T) > scratch.bytes) too_little("Sum", scratch, sums * sizeof(T));
            whole_reduce<T>(Reduction::Sum, {scratch.base, 1}, {from}, Shape::first(left));
            from = scratch.base;
            left = sums;
        }
        whole_reduce<T>(Reduction::Sum, {dst + row * sizeof(T), 1}, {from}, Shape::first(left));
    }
}

}  // namespace

template <typename T>
void sum_rows(uint8_t *dst, const uint8_t *src, Matrix shape, uint32_t stride, Scratch scratch) {
    const LibraryCall call;
    check_sums<T>(LibraryContract::Sum, dst, src, shape, stride);
    add_up_rows<T>(dst, src, shape, stride, scratch);
}

template <typename T>
void mean_rows(uint8_t *dst, const uint8_t *src, Matrix shape, uint32_t stride, Scratch scratch) {
    const LibraryCall call;
    check_sums<T>(LibraryContract::Mean, dst, src, shape, stride);
    add_up_rows<T>(dst, src, shape, stride, scratch);
    with_scalar<Op::Muls, T>({dst}, {dst}, static_cast<T>(1.0f / static_cast<float>(shape.columns)), Shape::first(shape.rows));
}

// In float: the temporary buffer holds a converted row and its sums.
void mean_rows_in_float(uint8_t *dst, const uint8_t *src, Matrix shape, uint32_t stride, Scratch scratch) {
    const LibraryCall call;
    check_sums<half>(LibraryContract::Mean, dst, src, shape, stride);
    constexpr uint32_t block_elems = kUbBlockBytes / sizeof(float), lanes = kRepeatBytes / sizeof(float);
    const uint64_t row_bytes = uint64_t{stride} * sizeof(float), sums = (shape.columns + lanes - 1) / lanes;
    const uint64_t results = (uint64_t{shape.rows} + block_elems - 1) / block_elems * kUbBlockBytes;
    const uint64_t needed = row_bytes + (sums + block_elems - 1) / block_elems * kUbBlockBytes + results;
    if (needed > scratch.bytes) too_little("Mean", scratch, needed);
    uint8_t *const wide = scratch.base, *const means = wide + row_bytes;
    const Scratch rest{means + results, static_cast<uint32_t>(scratch.bytes - row_bytes - results)};
    for (uint32_t row = 0; row < shape.rows; ++row) {
        cast<float, half>({wide}, {mutable_bytes(src) + uint64_t{row} * stride * sizeof(half)}, RoundMode::CAST_NONE, Shape::first(shape.columns));
        add_up_rows<float>(means + row * sizeof(float), wide, {1, shape.columns}, stride, rest);
    }
    with_scalar<Op::Muls, float>({means}, {means}, 1.0f / static_cast<float>(shape.columns), Shape::first(shape.rows));
    cast<half, float>({dst}, {means}, RoundMode::CAST_RINT, Shape::first(shape.rows));
}

template <typename T>
void select_by_bytes(uint8_t *dst, const uint8_t *src, T scalar, const uint8_t *mask, Matrix shape, uint32_t mask_columns,
                     bool keep_where_zero, Scratch scratch) {
    const LibraryCall call;
    check_rows("SelectWithBytesMask", shape.rows, std::max(shape.columns, mask_columns));
    const Pieces<half> pieces = divide<half>("SelectWithBytesMask", scratch, 2, shape.columns);
    for (uint32_t row = 0; row < shape.rows; ++row) {
        for (uint32_t done = 0; done < shape.columns; done += pieces.elems) {
            const Steps<half> steps(std::min(pieces.elems, shape.columns - done));
            const Shape run = Shape::first(steps.count());
            const uint64_t offset = (uint64_t{row} * shape.columns + done) * sizeof(T);
            const uint64_t mask_offset = uint64_t{row} * mask_columns + done;
            cast<half, uint8_t>({pieces.bits(0)}, {mutable_bytes(mask) + mask_offset}, RoundMode::CAST_NONE, run);
            steps.where(pieces.bits(1), pieces[0], keep_where_zero ? CompareMode::EQ : CompareMode::NE, 0.0f);
            select_scalar<T>({dst + offset}, {pieces.bits(1), true}, {mutable_bytes(src) + offset}, scalar, run);
        }
    }
}

template void broadcast_columns<uint16_t>(uint8_t *, const uint8_t *, Matrix, Scratch);
template void broadcast_columns<uint32_t>(uint8_t *, const uint8_t *, Matrix, Scratch);
template void broadcast_rows<uint16_t>(uint8_t *, const uint8_t *, Matrix, Scratch);
template void broadcast_rows<uint32_t>(uint8_t *, const uint8_t *, Matrix, Scratch);
template void sum_rows<half>(uint8_t *, const uint8_t *, Matrix, uint32_t, Scratch);
template void sum_rows<float>(uint8_t *, const uint8_t *, Matrix, uint32_t, Scratch);
template void mean_rows<half>(uint8_t *, const uint8_t *, Matrix, uint32_t, Scratch);
template void mean_rows<float>(uint8_t *, const uint8_t *, Matrix, uint32_t, Scratch);
template void select_by_bytes<half>(uint8_t *, const uint8_t *, half, const uint8_t *, Matrix, uint32_t, bool, Scratch);
template void select_by_bytes<float>(uint8_t *, const uint8_t *, float, const uint8_t *, Matrix, uint32_t, bool, Scratch);

}  // namespace asim
