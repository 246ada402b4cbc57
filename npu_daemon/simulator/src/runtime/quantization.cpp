// Dequantisation: scales in float, rows of integers in float, products column by column, and the results.
#include "asim/semantics/quantization.h"

#include <algorithm>

#include "asim/machine/call_sync.h"
#include "asim/machine/fault.h"
#include "asim/numeric/rounding.h"
#include "asim/semantics/cast.h"
#include "asim/semantics/gather.h"
#include "row_bounds.h"

namespace asim {

namespace {

constexpr uint32_t kLanes = kRepeatBytes / sizeof(float);
constexpr uint32_t kPerBlock = kUbBlockBytes / sizeof(float);
constexpr uint32_t kMostRepeats = 255;      // of an instruction, and blocks between its repeats
constexpr uint8_t kEvenElements = 1;        // pattern of GatherMask

uint8_t *mutable_bytes(const uint8_t *bytes) { return const_cast<uint8_t *>(bytes); }

uint32_t padded(uint32_t elements, uint32_t unit) { return (elements + unit - 1) / unit * unit; }

// The scales as floats, at `to`.
void widen(uint8_t *to, const Factors &factors, uint32_t count) {
    const Shape run = Shape::first(count);
    const Lanes from{mutable_bytes(factors.tensor)};
    if (factors.tensor == nullptr) {
        duplicate<float>({to}, factors.scalar, run);
    } else if (factors.type == FactorType::Bfloat16) {
        cast<float, bfloat16_t>({to}, from, RoundMode::CAST_NONE, run);
    } else if (factors.type == FactorType::LowWord) {
        GatherPattern even;
        even.fixed = kEvenElements;
        gather_mask<uint32_t>(to, from, even, 2 * count, 1);
    } else {
        with_scalar<Op::Adds, float>({to}, from, 0.0f, run);
    }
}

// The same `lanes` columns of `rows` rows, in place; an instruction has its limit of repeats.
void scale_columns(uint8_t *wide, uint8_t *factors, uint32_t lanes, uint32_t rows, uint32_t blocks_per_row) {
    for (uint32_t done = 0; done < rows; done += kMostRepeats) {
        const uint32_t repeats = std::min(rows - done, kMostRepeats);
        const Lanes at{wide + uint64_t{done} * blocks_per_row * kUbBlockBytes, 1, blocks_per_row};
        binary<Op::Mul, float>(at, at, {factors, 1, 0}, Shape::leading(lanes, repeats));
    }
}

void scale_rows(uint8_t *wide, uint8_t *factors, const ScaledRows &shape, uint32_t elements) {
    const uint32_t rows = elements / shape.columns, blocks = shape.columns / kPerBlock, short_row = elements % shape.columns;
    if (blocks > kMostRepeats) {
        for (uint32_t row = 0; row < rows; ++row) {
            const Lanes at{wide + uint64_t{row} * blocks * kUbBlockBytes};
            binary<Op::Mul, float>(at, at, {factors}, Shape::first(shape.counted));
        }
    } else if (rows > 0) {
        for (uint32_t done = 0; done < shape.counted; done += kLanes) {
            const uint64_t offset = uint64_t{done} * sizeof(float);
            scale_columns(wide + offset, factors + offset, std::min(kLanes, shape.counted - done), rows, blocks);
        }
    }
    if (short_row > 0) {
        const Lanes at{wide + uint64_t{rows} * blocks * kUbBlockBytes};
        binary<Op::Mul, float>(at, at, {factors}, Shape::first(short_row));
    }
}

template <typename D>
void narrow(uint8_t *dst, uint8_t *wide, uint32_t columns, uint32_t elements) {
    if constexpr (std::is_same_v<D, float>) {
        with_scalar<Op::Adds, float>({dst}, {wide}, 0.0f, Shape::first(elements));
    } else {
        constexpr RoundMode mode = std::is_same_v<D, half> ? RoundMode::CAST_NONE : RoundMode::CAST_RINT;
        const uint32_t row_bytes = padded(columns * sizeof(D), kUbBlockBytes);
        const uint32_t at_once = row_bytes == columns * sizeof(D) ? elements : columns;
        for (uint32_t done = 0, row = 0; done < elements; done += at_once, ++row) {
            cast<D, float>({dst + uint64_t{row} * row_bytes}, {wide + uint64_t{done} * sizeof(float)}, mode,
                           Shape::first(std::min(at_once, elements - done)));
        }
    }
}

}  // namespace

template <typename D>
void dequantize(uint8_t *dst, const uint8_t *src, Factors factors, ScaledRows rows, Scratch scratch) {
    const LibraryCall call;
    if (rows.columns == 0 || rows.columns % kPerBlock != 0 || rows.counted > rows.columns || factors.type > FactorType::LowWord) {
        fault(FaultKind::RuntimeFault, "AscendDequant", "rows of %u elements with %u to scale: expected a multiple of 8, and at most all of them", rows.columns,
              rows.counted);
    }
    check_rows("AscendDequant", 1, rows.columns);
    const uint32_t factor_bytes = padded(rows.counted, kPerBlock) * sizeof(float), row_bytes = rows.columns * sizeof(float);
    if (scratch.bytes < factor_bytes + row_bytes) {
        fault(FaultKind::RuntimeFault, "AscendDequant", "the temporary buffer has %u bytes, but the call needs at least %u",
              scratch.bytes, factor_bytes + row_bytes);
    }
    const uint32_t at_once = (scratch.bytes - factor_bytes) / row_bytes * rows.columns;
    const uint64_t dst_row_bytes = padded(rows.columns * sizeof(D), kUbBlockBytes);
    uint8_t *const wide = scratch.base + factor_bytes;
    widen(scratch.base, factors, rows.counted);
    for (uint32_t done = 0; done < rows.elements; done += at_once) {
        const uint32_t elements = std::min(at_once, rows.elements - done);
        cast<float, int32_t>({wide}, {mutable_bytes(src) + uint64_t{done} * sizeof(int32_t)}, RoundMode::CAST_NONE,
                             Shape::first(elements));
        scale_rows(wide, scratch.base, rows, elements);
        narrow<D>(dst + done / rows.columns * dst_row_bytes, wide, rows.columns, elements);
    }
}

template void dequantize<half>(uint8_t *, const uint8_t *, Factors, ScaledRows, Scratch);
template void dequantize<float>(uint8_t *, const uint8_t *, Factors, ScaledRows, Scratch);
template void dequantize<bfloat16_t>(uint8_t *, const uint8_t *, Factors, ScaledRows, Scratch);

}  // namespace asim
