// Data movement inside the unified buffer: gathering, broadcasting and copying.
#include "asim/semantics/gather.h"

#include "asim/check/operand_overlap.h"
#include "asim/machine/call_sync.h"
#include "asim/machine/registers.h"
#include "asim/semantics/indexed_lanes.h"
#include "spread_rows.h"

namespace asim {

namespace {

constexpr uint32_t kBlocksPerRepeat = kRepeatBytes / kUbBlockBytes;

// The part of the unified buffer that scattered reads touched.
class Touched {
public:
    Touched(Op op, uint32_t bytes_each) : op_(op), bytes_each_(bytes_each) {}

    void add(const uint8_t *address) {
        const uint64_t offset = checked_ub(info(op_).name, address, bytes_each_);
        check_ub_alignment(info(op_).name, "src address", offset, bytes_each_);
        low_ = std::min(low_, offset);
        high_ = std::max(high_, offset + bytes_each_);
    }
    Operand operand() const {
        const uint64_t low = std::min(low_, high_);
        return {low, static_cast<uint64_t>(Space::Ub), static_cast<uint32_t>(high_ - low), 1u};
    }

private:
    Op op_;
    uint32_t bytes_each_;
    uint64_t low_ = UINT64_MAX;
    uint64_t high_ = 0;
};

// Elements of the offset tensor that an instruction reads: one for each lane up to the last active one.
uint32_t offsets_read(const Shape &shape, uint32_t lanes, uint32_t element_bytes) {
    if (shape.counted) return shape.count;
    const uint32_t span = active_span(shape, element_bytes);
    return shape.repeats == 0 || span == 0 ? 0 : (shape.repeats - 1) * lanes + span;
}

bool kept(const GatherPattern &pattern, uint32_t repeat, uint32_t element) {
    if (pattern.bits == nullptr) {
        if (pattern.fixed == 7) return true;
        return pattern.fixed <= 2 ? element % 2 == pattern.fixed - 1u : element % 4 == pattern.fixed - 3u;
    }
    const uint8_t *bits = pattern.bits + uint64_t{repeat} * pattern.repeat_stride * kUbBlockBytes;
    return (bits[element / 8] >> (element % 8)) & 1u;
}

Operand pattern_operand(const GatherPattern &pattern, uint32_t elements, uint32_t repeats) {
    if (pattern.bits == nullptr) {
        if (pattern.fixed < 1 || pattern.fixed > 7) {
            fault(FaultKind::RuntimeFault, "GatherMask", "pattern %u does not exist: built-in patterns are 1 to 7",
                  static_cast<unsigned>(pattern.fixed));
        }
        return {0, static_cast<uint64_t>(Space::Ub), 0, 1u};
    }
    const uint64_t bytes = repeats == 0 ? 0 : uint64_t{repeats - 1} * pattern.repeat_stride * kUbBlockBytes + (elements + 7) / 8;
    return range_operand(Op::GatherMask, "src1Pattern", pattern.bits, bytes);
}

template <typename Bits>
uint64_t gathered_span(const Lanes &src, uint32_t elements, uint32_t repeats) {
    if (elements == 0 || repeats == 0) return 0;
    return reinterpret_cast<uint8_t *>(lane_pointer<Bits>(src, repeats - 1, elements - 1) + 1) - src.base;
}

template <typename F>
uint64_t for_each_kept(const GatherPattern &pattern, uint32_t elements, uint32_t repeats, F f) {
    uint64_t count = 0;
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        for (uint32_t element = 0; element < elements; ++element) {
            if (kept(pattern, repeat, element)) f(count++, repeat, element);
        }
    }
    return count;
}

}  // namespace

template <typename Bits>
void gather(Lanes dst, const uint8_t *src, const uint8_t *offsets, uint32_t base_bytes, Shape shape) {
    constexpr uint32_t lanes = lanes_per_repeat(sizeof(Bits));
    const Operand out = vector_operand<Bits>(Op::Gather, "dst", dst, shape, sizeof(Bits));
    const Operand index = range_operand(Op::Gather, "srcOffset", offsets,
                                        uint64_t{offsets_read(shape, lanes, sizeof(Bits))} * sizeof(uint32_t));
    const auto *offset = reinterpret_cast<const uint32_t *>(offsets);
    Touched touched(Op::Gather, sizeof(Bits));
    // A repeat is read before it is written: kernels gather in place.
    const uint32_t repeats = repeats_of(shape, sizeof(Bits));
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        const Shape one = shape.counted ? Shape::leading(std::min(lanes, shape.count - repeat * lanes), 1)
                                        : Shape::masked(shape.mask[0], shape.mask[1], 1);
        Bits values[lanes];
        for_each_index(one, lanes, [&](uint32_t, uint32_t lane) {
            const uint8_t *from = src + base_bytes + offset[repeat * lanes + lane];
            touched.add(from);
            values[lane] = *reinterpret_cast<const Bits *>(from);
        });
        for_each_index(one, lanes, [&](uint32_t, uint32_t lane) { *lane_pointer<Bits>(dst, repeat, lane) = values[lane]; });
    }
    emit_vector(Op::Gather, sizeof(Bits), repeats, {out, touched.operand(), index});
}

template <typename Bits>
void gather_blocks(Lanes dst, const uint8_t *src, const uint8_t *offsets, uint32_t repeats) {
    const Shape shape = Shape::leading(lanes_per_repeat(sizeof(Bits)), repeats);
    const Operand out = vector_operand<Bits>(Op::Gatherb, "dst", dst, shape, sizeof(Bits));
    const Operand index =
        range_operand(Op::Gatherb, "offset", offsets, uint64_t{repeats} * kBlocksPerRepeat * sizeof(uint32_t));
    const auto *offset = reinterpret_cast<const uint32_t *>(offsets);
    Touched touched(Op::Gatherb, kUbBlockBytes);
    for (uint32_t i = 0; i < repeats * kBlocksPerRepeat; ++i) {
        touched.add(src + offset[i]);
        uint8_t *to = dst.base + (uint64_t{i / kBlocksPerRepeat} * dst.repeat_stride +
                                  uint64_t{i % kBlocksPerRepeat} * dst.block_stride) * kUbBlockBytes;
        std::memmove(to, src + offset[i], kUbBlockBytes);
    }
    emit_vector(Op::Gatherb, sizeof(Bits), repeats, {out, touched.operand(), index});
}

template <typename Bits>
uint64_t gather_mask(uint8_t *dst, Lanes src, GatherPattern pattern, uint32_t elements, uint32_t repeats) {
    constexpr uint32_t lanes = lanes_per_repeat(sizeof(Bits));
    constexpr uint32_t kMostElements = 1u << 24;    // of all repeats together
    for (const uint32_t units : {src.block_stride, src.repeat_stride, pattern.repeat_stride, repeats}) check_units("GatherMask", "a stride or repeat", units);
    if (uint64_t{elements} * repeats > kMostElements) {
        fault(FaultKind::RuntimeFault, "GatherMask", "%u repeats of %u elements are more than the unified buffer holds", repeats, elements);
    }
    const Operand bits = pattern_operand(pattern, elements, repeats);
    const Operand in = range_operand(Op::GatherMask, "src0", src.base, gathered_span<Bits>(src, elements, repeats));
    const uint64_t count = for_each_kept(pattern, elements, repeats, [](uint64_t, uint32_t, uint32_t) {});
    const Operand out = range_operand(Op::GatherMask, "dst", dst, count * sizeof(Bits));
    Bits *to = reinterpret_cast<Bits *>(dst);
    for_each_kept(pattern, elements, repeats, [&](uint64_t position, uint32_t repeat, uint32_t element) {
        to[position] = *lane_pointer<Bits>(src, repeat, element);
    });
    emit_vector(Op::GatherMask, sizeof(Bits), repeats * ((elements + lanes - 1) / lanes), {out, in, bits});
    synchronise(Pipe::V, Pipe::S);  // the caller gets the count
    vector_registers().gathered = count;
    return gathered_count();
}

template <typename Bits>
void broadcast_blocks(Lanes dst, const uint8_t *src, uint32_t repeats) {
    check_range(ParameterRange::BrcbBlockStride, dst.block_stride);
    const Shape shape = Shape::leading(lanes_per_repeat(sizeof(Bits)), repeats);
    const Operand out = vector_operand<Bits>(Op::Brcb, "dst", dst, shape, sizeof(Bits));
    const Operand in = range_operand(Op::Brcb, "src", src, uint64_t{repeats} * kBlocksPerRepeat * sizeof(Bits));
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        Bits values[kBlocksPerRepeat];
        std::memcpy(values, src + repeat * sizeof values, sizeof values);
        for_each_index(Shape::leading(lanes_per_repeat(sizeof(Bits)), 1), lanes_per_repeat(sizeof(Bits)),
                       [&](uint32_t, uint32_t lane) {
                           *lane_pointer<Bits>(dst, repeat, lane) = values[lane * sizeof(Bits) / kUbBlockBytes];
                       });
    }
    emit_vector(Op::Brcb, sizeof(Bits), repeats, {out, in});
}

template <typename Bits>
void copy_lanes(Lanes dst, Lanes src, Shape shape) {
    const Operand out = vector_operand<Bits>(Op::CopyUbToUb, "dst", dst, shape, sizeof(Bits));
    const Operand in = vector_operand<Bits>(Op::CopyUbToUb, "src", src, shape, sizeof(Bits));
    for_each_lane<Bits>(shape, [](Bits &d, const Bits &x) { d = x; }, dst, source<Bits>(src));
    emit_vector(Op::CopyUbToUb, sizeof(Bits), repeats_of(shape, sizeof(Bits)), {out, in});
}

template <typename Bits>
void spread_rows(uint8_t *dst, uint8_t *blocks, uint32_t rows, uint32_t blocks_per_row) {
    const uint32_t row_bytes = blocks_per_row * kUbBlockBytes, repeats = (blocks_per_row + 7) / 8;
    check_units("BroadCast", "the number of data blocks of a row", blocks_per_row);
    const Operand out = vector_operand<Bits>(Op::CopyUbToUb, "dst", {dst}, Shape::first(uint64_t{rows} * row_bytes / sizeof(Bits)), sizeof(Bits));
    Operand in = vector_operand<Bits>(Op::CopyUbToUb, "src", {blocks}, Shape::first(rows * kUbBlockBytes / sizeof(Bits)), sizeof(Bits));
    in.stride = 0;                      // the same block for all of a repeat
    for (uint32_t block = 0; block < rows * blocks_per_row; ++block) {
        std::memcpy(dst + uint64_t{block} * kUbBlockBytes, blocks + block / blocks_per_row * kUbBlockBytes, kUbBlockBytes);
    }
    emit_vector(Op::CopyUbToUb, sizeof(Bits), rows * repeats, {out, in});
}

template void gather<uint16_t>(Lanes, const uint8_t *, const uint8_t *, uint32_t, Shape);
template void gather<uint32_t>(Lanes, const uint8_t *, const uint8_t *, uint32_t, Shape);
template void gather_blocks<uint16_t>(Lanes, const uint8_t *, const uint8_t *, uint32_t);
template void gather_blocks<uint32_t>(Lanes, const uint8_t *, const uint8_t *, uint32_t);
template uint64_t gather_mask<uint16_t>(uint8_t *, Lanes, GatherPattern, uint32_t, uint32_t);
template uint64_t gather_mask<uint32_t>(uint8_t *, Lanes, GatherPattern, uint32_t, uint32_t);
template void broadcast_blocks<uint16_t>(Lanes, const uint8_t *, uint32_t);
template void broadcast_blocks<uint32_t>(Lanes, const uint8_t *, uint32_t);
template void copy_lanes<uint16_t>(Lanes, Lanes, Shape);
template void copy_lanes<uint32_t>(Lanes, Lanes, Shape);
template void spread_rows<uint16_t>(uint8_t *, uint8_t *, uint32_t, uint32_t);
template void spread_rows<uint32_t>(uint8_t *, uint8_t *, uint32_t, uint32_t);

}  // namespace asim
