#include "asim/semantics/copy.h"

#include <algorithm>
#include <cstring>

#include "asim/check/check.h"
#include "asim/check/copy_bounds.h"
#include "asim/machine/call_sync.h"
#include "asim/machine/gm.h"
#include "asim/machine/rerun.h"
#include "asim/semantics/atomic.h"
#include "asim/trace/writer.h"
#include "padding.h"

namespace asim {

namespace {

uint64_t span(uint32_t bursts, uint64_t stride, uint64_t burst_bytes) {
    return bursts == 0 ? 0 : (bursts - 1) * stride + burst_bytes;
}

uint64_t round_to_block(uint64_t bytes) { return (bytes + kUbBlockBytes - 1) / kUbBlockBytes * kUbBlockBytes; }

Record copy_record(Op op, const CopyShape &shape) {
    Record record{};
    record.op = op;
    record.dtype_bytes = 1;
    record.repeats = shape.burst_count;
    record.burst_bytes = shape.burst_bytes;
    const uint16_t atomic = op == Op::CopyUbToGm ? atomic_flags(block().atomic) : 0;
    record.flag_id = static_cast<uint16_t>((shape.bypass_l2 ? kBypassesL2 : 0) | atomic);
    return record;
}

// Bytes [begin, end) of a burst that differ from what a copy puts there: overlapping tails often write the same again. What held
// no value before is changed by any.
struct Changed {
    uint64_t begin = UINT64_MAX;
    uint64_t end = 0;

    void add(uint64_t offset, const Changed &other) {
        if (other.end <= other.begin) return;
        begin = std::min(begin, offset + other.begin);
        end = std::max(end, offset + other.end);
    }
};

Changed changed_bytes(const uint8_t *old, const uint8_t *fresh, uint32_t bytes) {
    const Held held = note_written(old, bytes);
    if (held.leading == bytes && std::memcmp(old, fresh, bytes) == 0) return {};
    const uint64_t first_end = bytes - held.trailing;
    Changed changed{0, bytes};
    while (changed.begin < held.leading && old[changed.begin] == fresh[changed.begin]) ++changed.begin;
    while (changed.end > std::max(changed.begin, first_end) && old[changed.end - 1] == fresh[changed.end - 1]) --changed.end;
    return changed;
}

// What `changed` of a copy is, as its third operand: of all bursts at once where they follow each other without gaps, else of each.
Operand changed_operand(const Operand &destination, const CopyShape &shape, bool dense, const Changed &changed) {
    Operand narrowed = destination;
    narrowed.extent_bytes = 0;
    if (changed.end <= changed.begin) return narrowed;
    narrowed.address += changed.begin;
    const uint64_t before = dense ? 0 : (shape.burst_count - 1) * shape.gm_stride_bytes;
    narrowed.extent_bytes = static_cast<uint32_t>(before + changed.end - changed.begin);
    return narrowed;
}

// Block and repeat strides, in data blocks, of blocks that lie `stride_bytes` apart.
uint32_t vector_stride(uint32_t stride_bytes) {
    const uint32_t blocks = std::min(stride_bytes / kUbBlockBytes, 0x1fffu);
    return blocks | (8 * blocks) << 16;
}

Operand gm_operand(uint64_t address, const CopyShape &shape) {
    return {address, static_cast<uint64_t>(Space::Gm),
            static_cast<uint32_t>(span(shape.burst_count, shape.gm_stride_bytes, shape.burst_bytes)),
            static_cast<uint32_t>(shape.gm_stride_bytes)};
}

Operand ub_operand(const char *call, const char *role, const uint8_t *ub, const CopyShape &shape, uint64_t burst) {
    const uint64_t extent = span(shape.burst_count, shape.ub_stride_bytes, burst);
    const uint64_t offset = checked_ub(call, ub, extent);
    check_ub_alignment(call, role, offset, kUbBlockBytes);
    return {offset, static_cast<uint64_t>(Space::Ub), static_cast<uint32_t>(extent),
            static_cast<uint32_t>(shape.ub_stride_bytes)};
}

void fill(uint8_t *destination, uint32_t bytes, const uint8_t *element, uint32_t element_bytes) {
    for (uint32_t i = 0; i < bytes; ++i) destination[i] = element[i % element_bytes];
}

// What a padded copy writes beside a burst, up to the next 32 B: the padding value if asked for, the first element
// where no padding is given, and nothing in particular where padding is given without a value.
void fill_around(uint8_t *row, uint32_t burst_bytes, uint32_t written_bytes, const PadShape &pad) {
    uint8_t *tail = row + pad.left_bytes + burst_bytes;
    const uint32_t tail_bytes = written_bytes - pad.left_bytes - burst_bytes;
    if (pad.left_bytes + pad.right_bytes == 0) {
        fill(tail, tail_bytes, row, pad.element_bytes);
    } else if (pad.fill) {
        const auto *value = reinterpret_cast<const uint8_t *>(&pad.value);
        fill(row, pad.left_bytes, value, pad.element_bytes);
        fill(tail, tail_bytes, value, pad.element_bytes);
    } else {
        std::memset(row, rerun().poison, pad.left_bytes);
        std::memset(tail, rerun().poison, tail_bytes);
    }
}

// The library splits what is more than one instruction.
void check_shape(const char *call, const CopyShape &shape) {
    if (block().library_calls == 0) check_copied_bursts(call, shape.burst_count);
    check_bursts(call, {shape.burst_count}, {shape.gm_stride_bytes, shape.ub_stride_bytes});
}

}  // namespace

void copy_gm_to_ub(CopyCall named, uint8_t *ub, const uint8_t *gm, CopyShape shape, PadShape pad) {
    if (on_cube_core()) return;  // as on the device
    const char *call = named == CopyCall::DataCopy ? "DataCopy(GM->UB)" : "DataCopyPad(GM->UB)";
    if (named == CopyCall::DataCopy) take_remainder(call, shape, __builtin_return_address(0));
    check_shape(call, shape);
    check_element_bytes(call, pad.element_bytes);
    take_padding(pad);
    if (pad.left_bytes > kUbBlockBytes || pad.right_bytes > kUbBlockBytes) {
        fault(FaultKind::RuntimeFault, call, "padding of %u bytes on the left and %u on the right: at most %u on either side", pad.left_bytes,
              pad.right_bytes, kUbBlockBytes);
    }
    if (pad.fill && pad.element_bytes == sizeof(uint64_t) && pad.value != 0) {
        fault(FaultKind::RuntimeFault, call, "paddingValue of elements of 8 bytes is %lld, expected 0: fill in another value with Duplicate",
              static_cast<long long>(pad.value));
    }
    const uint64_t padded = uint64_t{pad.left_bytes} + shape.burst_bytes + pad.right_bytes;
    const uint64_t written = round_to_block(padded);
    const uint64_t gm_span = span(shape.burst_count, shape.gm_stride_bytes, shape.burst_bytes);
    const Operand origin = gm_operand(gm_span ? checked_gm(call, gm, gm_span, false) : 0, shape);
    const Operand destination = ub_operand(call, "dst", ub, shape, shape.burst_bytes ? written : 0);
    for (uint32_t burst = 0; burst < shape.burst_count && shape.burst_bytes > 0; ++burst) {
        uint8_t *row = ub + burst * shape.ub_stride_bytes;
        std::memcpy(row + pad.left_bytes, gm + burst * shape.gm_stride_bytes, shape.burst_bytes);
        fill_around(row, shape.burst_bytes, static_cast<uint32_t>(written), pad);
    }
    emit(copy_record(Op::CopyGmToUb, shape), {destination, origin});
}

void copy_ub_to_gm(CopyCall named, uint8_t *gm, const uint8_t *ub, CopyShape shape, uint32_t dtype_code) {
    if (on_cube_core()) return;
    const char *call = named == CopyCall::DataCopy ? "DataCopy(UB->GM)" : "DataCopyPad(UB->GM)";
    if (named == CopyCall::DataCopy) take_remainder(call, shape, __builtin_return_address(0));
    check_shape(call, shape);
    const uint64_t gm_span = span(shape.burst_count, shape.gm_stride_bytes, shape.burst_bytes);
    const Operand origin = ub_operand(call, "src", ub, shape, shape.burst_bytes);
    const Operand destination = gm_operand(gm_span ? checked_gm(call, gm, gm_span, true) : 0, shape);
    const bool atomic = block().atomic != AtomicMode::None;
    const bool dense = shape.burst_count == 1 || shape.gm_stride_bytes == shape.burst_bytes;
    Changed all;
    for (uint32_t burst = 0; burst < shape.burst_count; ++burst) {
        uint8_t *row = gm + burst * shape.gm_stride_bytes;
        const uint8_t *from = ub + burst * shape.ub_stride_bytes;
        if (atomic) {
            accumulate(row, from, shape.burst_bytes, dtype_code);
            continue;
        }
        all.add(dense ? uint64_t{burst} * shape.burst_bytes : 0, changed_bytes(row, from, shape.burst_bytes));
        std::memcpy(row, from, shape.burst_bytes);
    }
    const Record record = copy_record(Op::CopyUbToGm, shape);
    const uint64_t whole = dense ? uint64_t{shape.burst_count} * shape.burst_bytes : shape.burst_bytes;
    if (atomic || (all.begin == 0 && all.end == whole)) {
        emit(record, {destination, origin});
        return;
    }
    emit(record, {destination, origin, changed_operand(destination, shape, dense, all)});
}

void copy_ub_to_ub(uint8_t *dst, const uint8_t *src, uint32_t burst_count, uint32_t burst_bytes,
                   uint32_t dst_stride_bytes, uint32_t src_stride_bytes) {
    CopyShape shape{burst_count, burst_bytes, 0, dst_stride_bytes};
    check_shape("DataCopy(UB->UB)", shape);
    if (burst_bytes == 0) {
        fault(FaultKind::RuntimeFault, "DataCopy(UB->UB)",
              "copies less than a data block: within the unified buffer, whole blocks of %u bytes are copied, and the vector unit of a device ends "
              "with an exception where there is none", kUbBlockBytes);
    }
    Operand destination = ub_operand("DataCopy(UB->UB)", "dst", dst, shape, burst_bytes);
    shape.ub_stride_bytes = src_stride_bytes;
    Operand origin = ub_operand("DataCopy(UB->UB)", "src", src, shape, burst_bytes);
    for (uint32_t burst = 0; burst < burst_count; ++burst) {
        std::memmove(dst + uint64_t{burst} * dst_stride_bytes, src + uint64_t{burst} * src_stride_bytes, burst_bytes);
    }
    // A vector instruction as far as pricing goes: eight blocks a repeat, in whatever place the bursts put them.
    const uint32_t block_bytes = std::min(burst_bytes, kUbBlockBytes);
    destination.stride = vector_stride(burst_bytes == block_bytes ? dst_stride_bytes : kUbBlockBytes);
    origin.stride = vector_stride(burst_bytes == block_bytes ? src_stride_bytes : kUbBlockBytes);
    Record record{};
    record.op = Op::CopyUbToUb;
    record.source_pipe = place_in_call();
    record.dtype_bytes = 2;
    const uint64_t repeats = (uint64_t{burst_count} * burst_bytes + kRepeatBytes - 1) / kRepeatBytes;
    record.repeats = static_cast<uint32_t>(std::min<uint64_t>(repeats, UINT32_MAX));
    emit(record, {destination, origin});
}

}  // namespace asim
