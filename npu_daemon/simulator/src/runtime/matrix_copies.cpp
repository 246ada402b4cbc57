#include "matrix_copies.h"

#include "asim/machine/block.h"
#include "asim/machine/scheduler.h"

namespace asim {

namespace {

uint32_t bytes_of(NumberType type, uint64_t elements) { return static_cast<uint32_t>(elements * type_bits(type) / 8); }

}  // namespace

uint32_t padded_k_bytes(NumberType type, uint32_t k) { return align_up(bytes_of(type, align_up(k, 2)), kFractalRowBytes); }

uint64_t fractal_bytes(NumberType type, uint32_t rows, uint32_t k) { return uint64_t{align_up(rows, kFractalRows)} * padded_k_bytes(type, k); }

Bursts bursts_of(const StoredMatrix &matrix, const MatrixPart &part, bool apart) {
    if (matrix.layout == MatrixLayout::Fractals) {
        const uint32_t columns = matrix.fractal_columns;
        const uint64_t stride = offset_of(matrix, 0, columns);
        return {ceil_div(part.columns, columns), bytes_of(matrix.type, uint64_t{part.rows} * columns), static_cast<uint32_t>(stride)};
    }
    const uint32_t stride = static_cast<uint32_t>(offset_of(matrix, 1, 0));
    const uint32_t bytes = bytes_of(matrix.type, part.columns);
    if (bytes == stride && !apart) return {1, bytes * part.rows, bytes * part.rows};
    return {part.rows, bytes, stride};
}

Record copy_record(Op op, const StoredMatrix &matrix, const Bursts &bursts) {
    Record record{};
    record.op = op;
    record.source_pipe = on_cube_core() ? kInsideCall : 0;
    record.dtype_bytes = 1;
    record.repeats = bursts.count;
    record.burst_bytes = bursts.bytes;
    record.flag_id = matrix.bypass_l2 ? kBypassesL2 : 0;
    return record;
}

Operand mailbox_operand(uint32_t bytes) {
    return {kMailboxBase + block().group * kMailboxBytes, static_cast<uint64_t>(Space::Gm), bytes, bytes};
}

Operand kernels_l1_operand(const StoredMatrix &matrix, const MatrixPart &part) {
    const uint64_t begin = checked_part("Matmul", matrix, {0, 0, 1, 1}, false);
    return {begin + offset_of(matrix, part.row, part.column), static_cast<uint64_t>(Space::L1), static_cast<uint32_t>(span_of(matrix, part)), 0};
}

Operand gm_operand(const char *call, const StoredMatrix &matrix, const MatrixPart &part, const Bursts &bursts, bool write) {
    const uint64_t address = checked_part(call, matrix, part, write);
    return {address, static_cast<uint64_t>(Space::Gm), static_cast<uint32_t>(span_of(matrix, part)), bursts.stride};
}

}  // namespace asim
