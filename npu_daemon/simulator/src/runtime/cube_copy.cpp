#include "asim/semantics/cube_copy.h"

#include <algorithm>
#include <cstring>

#include "asim/check/check.h"
#include "asim/check/copy_bounds.h"
#include "asim/check/operand_overlap.h"
#include "asim/machine/block.h"
#include "asim/machine/gm.h"
#include "asim/numeric/types.h"
#include "asim/trace/writer.h"
#include "padding.h"

namespace asim {

namespace {

constexpr uint64_t kFractalBytes = 512;

uint64_t span(uint64_t count, uint64_t stride, uint64_t bytes) { return count == 0 || bytes == 0 ? 0 : (count - 1) * stride + bytes; }

uint64_t round_to_block(uint64_t bytes) { return (bytes + kUbBlockBytes - 1) / kUbBlockBytes * kUbBlockBytes; }

uint32_t unit_of(Space space) { return space == Space::L1 ? kUbBlockBytes : kFractalBytes; }

Operand operand(Space space, uint64_t address, uint64_t extent, uint64_t stride) {
    return {address, static_cast<uint64_t>(space), static_cast<uint32_t>(extent), static_cast<uint32_t>(stride)};
}

Record copy_record(Op op, uint32_t bursts, uint32_t burst_bytes, bool bypass_l2) {
    Record record{};
    record.op = op;
    record.dtype_bytes = 1;
    record.repeats = bursts;
    record.burst_bytes = burst_bytes;
    record.flag_id = bypass_l2 ? kBypassesL2 : 0;
    return record;
}

void write_row(uint8_t *row, const uint8_t *source, uint32_t bytes, uint64_t written, const PadShape &pad) {
    std::memcpy(row + pad.left_bytes, source, bytes);
    for (uint64_t i = 0; i < written; ++i) {
        const auto *value = reinterpret_cast<const uint8_t *>(&pad.value);
        if (i < pad.left_bytes || i >= uint64_t{pad.left_bytes} + bytes) row[i] = pad.fill ? value[i % pad.element_bytes] : 0;
    }
}

void copy_matrix(uint8_t *l1, const uint8_t *gm, const Nd2NzShape &shape) {
    const uint64_t row_bytes = uint64_t{shape.columns} * shape.element_bytes;
    for (uint32_t row = 0; row < shape.rows; ++row) {
        const uint8_t *from = gm + row * shape.row_stride_bytes;
        uint8_t *to = l1 + row * shape.nz_row_stride_bytes;
        for (uint64_t done = 0; done < row_bytes; done += kUbBlockBytes) {
            const uint64_t bytes = std::min<uint64_t>(kUbBlockBytes, row_bytes - done);
            std::memcpy(to, from + done, bytes);
            std::memset(to + bytes, 0, kUbBlockBytes - bytes);  // the last block of a row is filled up with zeros
            to += shape.nz_column_stride_bytes;
        }
    }
}

}  // namespace

void copy_gm_to_l1(CopyCall named, Space space, uint8_t *dst, const uint8_t *gm, CopyShape shape, PadShape pad) {
    if (!on_cube_core()) return;
    const char *call = named == CopyCall::LoadData ? "LoadData(GM)" : "DataCopy(GM->L1)";
    if (named == CopyCall::DataCopy) take_remainder(call, shape, __builtin_return_address(0));
    if (shape.burst_count == 0 || shape.burst_bytes == 0) return;
    check_copied_bursts(call, shape.burst_count);
    check_bursts(call, {}, {shape.gm_stride_bytes, shape.ub_stride_bytes});
    check_element_bytes(call, pad.element_bytes);
    take_padding(pad);
    const uint64_t written = round_to_block(uint64_t{pad.left_bytes} + shape.burst_bytes + pad.right_bytes);
    const uint64_t gm_span = span(shape.burst_count, shape.gm_stride_bytes, shape.burst_bytes);
    const uint64_t extent = span(shape.burst_count, shape.ub_stride_bytes, written);
    const uint64_t origin = checked_gm(call, gm, gm_span, false);
    const uint64_t offset = checked_local(call, "dst", space, dst, extent, unit_of(space));
    for (uint32_t burst = 0; burst < shape.burst_count; ++burst) {
        write_row(dst + burst * shape.ub_stride_bytes, gm + burst * shape.gm_stride_bytes, shape.burst_bytes, written, pad);
    }
    emit(copy_record(Op::CopyGmToL1, shape.burst_count, shape.burst_bytes, shape.bypass_l2),
         {operand(space, offset, extent, shape.ub_stride_bytes), operand(Space::Gm, origin, gm_span, shape.gm_stride_bytes)});
}

void copy_l1_to_gm(uint8_t *gm, const uint8_t *src, CopyShape shape) {
    constexpr const char *call = "DataCopy(L1->GM)";
    if (!on_cube_core()) return;
    take_remainder(call, shape, __builtin_return_address(0));
    if (shape.burst_count == 0 || shape.burst_bytes == 0) return;
    check_copied_bursts(call, shape.burst_count);
    check_bursts(call, {}, {shape.gm_stride_bytes, shape.ub_stride_bytes});
    const uint64_t gm_span = span(shape.burst_count, shape.gm_stride_bytes, shape.burst_bytes);
    const uint64_t extent = span(shape.burst_count, shape.ub_stride_bytes, shape.burst_bytes);
    const uint64_t offset = checked_local(call, "src", Space::L1, src, extent, kUbBlockBytes);
    const uint64_t target = checked_gm(call, gm, gm_span, true);
    for (uint32_t burst = 0; burst < shape.burst_count; ++burst) {
        std::memcpy(gm + burst * shape.gm_stride_bytes, src + burst * shape.ub_stride_bytes, shape.burst_bytes);
    }
    emit(copy_record(Op::CopyL1ToGm, shape.burst_count, shape.burst_bytes, shape.bypass_l2),
         {operand(Space::Gm, target, gm_span, shape.gm_stride_bytes), operand(Space::L1, offset, extent, shape.ub_stride_bytes)});
}

namespace {

bool in_ub(const uint8_t *pointer) {
    const Block &self = block();
    return pointer >= self.ub && pointer < self.ub + self.ub_bytes;
}

// On a vector core: column by column of 32 B, each a copy of all rows; a last one that is narrower is filled up with zeros.
void copy_nd_to_ub(uint8_t *ub, const uint8_t *gm, const Nd2NzShape &shape) {
    constexpr uint32_t kMostRows = 4095;
    check_element_bytes("DataCopy(Nd2NzParams)", shape.element_bytes);
    const uint32_t element = shape.element_bytes, row_bytes = shape.columns * element;
    check_range(ParameterRange::NdToNzMatrices, shape.matrices);
    check_range(ParameterRange::NdToNzRows, shape.rows);
    check_range(ParameterRange::NdToNzColumns, shape.columns);
    check_range(ParameterRange::NdToNzSourceRow, static_cast<int64_t>(shape.row_stride_bytes / element));
    check_range(ParameterRange::NdToNzColumnStride, static_cast<int64_t>(shape.nz_column_stride_bytes / kUbBlockBytes));
    check_range(ParameterRange::NdToNzRowStride, static_cast<int64_t>(shape.nz_row_stride_bytes / kUbBlockBytes));
    check_range(ParameterRange::NdToNzMatrixStride, static_cast<int64_t>(shape.nz_matrix_stride_bytes / element));
    for (uint32_t matrix = 0; matrix < shape.matrices; ++matrix) {
        for (uint32_t column = 0; column * kUbBlockBytes < row_bytes; ++column) {
            const uint32_t bytes = std::min(kUbBlockBytes, row_bytes - column * kUbBlockBytes);
            PadShape pad;
            pad.fill = bytes < kUbBlockBytes;
            pad.right_bytes = kUbBlockBytes - bytes;
            pad.element_bytes = element;
            for (uint32_t row = 0; row < shape.rows; row += kMostRows) {
                CopyShape copy{std::min(kMostRows, shape.rows - row), bytes, shape.row_stride_bytes, shape.nz_row_stride_bytes};
                copy.bypass_l2 = shape.bypass_l2;
                copy_gm_to_ub(CopyCall::DataCopyPad, ub + matrix * shape.nz_matrix_stride_bytes + column * shape.nz_column_stride_bytes + row * shape.nz_row_stride_bytes,
                              gm + matrix * shape.matrix_stride_bytes + row * shape.row_stride_bytes + column * kUbBlockBytes, copy, pad);
            }
        }
    }
}

}  // namespace

void copy_nz_to_nd(uint8_t *gm, const uint8_t *ub, Nz2NdShape shape, uint32_t dtype_code) {
    constexpr uint32_t kWidth = 16, kMostRows = 4095;     // elements of a column of fractals
    check_element_bytes("DataCopy(Nz2NdParamsFull)", shape.element_bytes);
    check_range(ParameterRange::NzToNdMatrices, shape.matrices);
    check_range(ParameterRange::NzToNdRows, shape.rows);
    check_range(ParameterRange::NzToNdColumns, shape.columns);
    check_range(ParameterRange::NzToNdMatrixStride, shape.matrix_stride_fractals);
    check_range(ParameterRange::NzToNdSourceStride, shape.column_stride_rows);
    check_range(ParameterRange::NzToNdRowStride, shape.row_stride_elems);
    check_range(ParameterRange::NzToNdTargetStride, shape.target_stride_elems);
    const uint64_t element = shape.element_bytes, row_bytes = kWidth * element;
    for (uint32_t matrix = 0; matrix < shape.matrices; ++matrix) {
        for (uint32_t column = 0; column * kWidth < shape.columns; ++column) {
            for (uint32_t row = 0; row < shape.rows; row += kMostRows) {
                CopyShape copy{std::min(kMostRows, shape.rows - row), static_cast<uint32_t>(row_bytes), shape.row_stride_elems * element, row_bytes};
                copy.bypass_l2 = shape.bypass_l2;
                const uint64_t from = uint64_t{matrix} * shape.matrix_stride_fractals * kWidth * row_bytes + (uint64_t{column} * shape.column_stride_rows + row) * row_bytes;
                const uint64_t to = (uint64_t{matrix} * shape.target_stride_elems + uint64_t{row} * shape.row_stride_elems + column * kWidth) * element;
                copy_ub_to_gm(CopyCall::DataCopy, gm + to, ub + from, copy, dtype_code);
            }
        }
    }
}

void copy_nd_to_nz(uint8_t *l1, const uint8_t *gm, Nd2NzShape shape) {
    constexpr const char *kCall = "DataCopy(ND2NZ)";
    if (!on_cube_core() && in_ub(l1)) return copy_nd_to_ub(l1, gm, shape);
    if (!on_cube_core() || shape.rows == 0 || shape.columns == 0) return;
    check_copied_bursts(kCall, shape.matrices);
    check_bursts(kCall, {shape.rows, shape.columns},
                 {shape.row_stride_bytes, shape.nz_column_stride_bytes, shape.nz_row_stride_bytes});
    check_element_bytes(kCall, shape.element_bytes);
    const uint64_t row_bytes = uint64_t{shape.columns} * shape.element_bytes;
    const uint64_t columns = (row_bytes + kUbBlockBytes - 1) / kUbBlockBytes;
    const uint64_t gm_span = span(shape.rows, shape.row_stride_bytes, row_bytes);
    const uint64_t extent = span(shape.rows, shape.nz_row_stride_bytes, span(columns, shape.nz_column_stride_bytes, kUbBlockBytes));
    for (uint32_t i = 0; i < shape.matrices; ++i) {
        const uint8_t *from = gm + i * shape.matrix_stride_bytes;
        uint8_t *to = l1 + i * shape.nz_matrix_stride_bytes;
        const uint64_t origin = checked_gm(kCall, from, gm_span, false);
        const uint64_t offset = checked_local(kCall, "dst", Space::L1, to, extent, kUbBlockBytes);
        copy_matrix(to, from, shape);
        emit(copy_record(Op::CopyGmToL1, shape.rows, static_cast<uint32_t>(row_bytes), shape.bypass_l2),
             {operand(Space::L1, offset, extent, 0), operand(Space::Gm, origin, gm_span, shape.row_stride_bytes)});
    }
}

void fill_local(Space space, uint8_t *dst, FillShape shape) {
    constexpr const char *call = "InitConstValue";
    if (!on_cube_core() || shape.repeats == 0 || shape.blocks == 0) return;
    check_bursts(call, {shape.repeats, shape.blocks, shape.gap_blocks}, {});
    check_element_bytes(call, shape.element_bytes);
    if (shape.element_bytes > sizeof shape.value) fault(FaultKind::RuntimeFault, call, "a buffer is filled with elements of up to 4 bytes");
    const uint64_t unit = unit_of(space);
    const uint64_t bytes = shape.blocks * unit;
    const uint64_t stride = bytes + shape.gap_blocks * unit;
    const uint64_t extent = span(shape.repeats, stride, bytes);
    const uint64_t offset = checked_local(call, "dst", space, dst, extent, static_cast<uint32_t>(unit));
    for (uint32_t repeat = 0; repeat < shape.repeats; ++repeat) {
        uint8_t *run = dst + repeat * stride;
        for (uint64_t i = 0; i < bytes; ++i) run[i] = shape.value[i % shape.element_bytes];
    }
    emit(copy_record(space == Space::L1 ? Op::FillL1 : Op::FillL0, shape.repeats, static_cast<uint32_t>(bytes), false),
         {operand(space, offset, extent, stride)});
}

void copy_l1_to_table(Space space, uint8_t *dst, const uint8_t *src, CopyShape shape, bool half_to_float) {
    const char *call = half_to_float ? "DataCopy(L1->bias table)" : "DataCopy(L1->table)";
    if (!on_cube_core() || shape.burst_count == 0 || shape.burst_bytes == 0) return;
    check_copied_bursts(call, shape.burst_count);
    check_bursts(call, {}, {shape.gm_stride_bytes, shape.ub_stride_bytes});
    const uint64_t written = half_to_float ? uint64_t{2} * shape.burst_bytes : shape.burst_bytes;
    const uint64_t read = span(shape.burst_count, shape.gm_stride_bytes, shape.burst_bytes);
    const uint64_t extent = span(shape.burst_count, shape.ub_stride_bytes, written);
    const uint64_t origin = checked_local(call, "src", Space::L1, src, read, kUbBlockBytes);
    const uint64_t offset = checked_local(call, "dst", space, dst, extent, 64);
    for (uint32_t burst = 0; burst < shape.burst_count; ++burst) {
        uint8_t *to = dst + burst * shape.ub_stride_bytes;
        const uint8_t *from = src + burst * shape.gm_stride_bytes;
        if (!half_to_float) std::memcpy(to, from, written);
        for (uint32_t i = 0; half_to_float && i < shape.burst_bytes / sizeof(half); ++i) {
            reinterpret_cast<float *>(to)[i] = static_cast<float>(reinterpret_cast<const half *>(from)[i]);
        }
    }
    emit(copy_record(space == Space::BiasTable ? Op::CopyL1ToBias : Op::CopyL1ToFixpipe, shape.burst_count, shape.burst_bytes, false),
         {operand(space, offset, extent, shape.ub_stride_bytes), operand(Space::L1, origin, read, shape.gm_stride_bytes)});
}

}  // namespace asim
