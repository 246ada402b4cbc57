#include "asim/semantics/fixpipe.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "asim/check/check.h"
#include "asim/check/copy_bounds.h"
#include "asim/machine/block.h"
#include "asim/machine/gm.h"
#include "asim/numeric/types.h"
#include "asim/semantics/atomic.h"
#include "asim/trace/writer.h"

namespace asim {

namespace {

constexpr uint32_t kSide = 16;
constexpr uint32_t kScaleBits = 0xffffe000u;    // the multiplier has 10 bits of fraction

uint32_t bytes_of(ResultType type) {
    if (type == ResultType::F32 || type == ResultType::I32) return 4;
    return type == ResultType::F16 || type == ResultType::Bf16 ? 2 : 1;
}

// A scale as the hardware reads it: multiplier in the low word, offset of the result in bits 37 to 45.
struct Scale {
    explicit Scale(uint64_t bits) {
        const auto word = static_cast<uint32_t>(bits) & kScaleBits;
        std::memcpy(&factor, &word, sizeof factor);
        const auto raw = static_cast<int32_t>(bits >> 37 & 0x1ff);
        offset = raw >= 256 ? raw - 512 : raw;
    }
    float factor;
    int32_t offset;
};

template <typename T>
void store(uint8_t *target, T value) {
    std::memcpy(target, &value, sizeof value);
}

void store_scaled_byte(uint8_t *target, float value, const Scale &scale, bool is_signed) {
    const float scaled = std::nearbyint(value) + static_cast<float>(scale.offset);
    const float bounded = std::clamp(scaled, is_signed ? -128.0f : 0.0f, is_signed ? 127.0f : 255.0f);
    store(target, is_signed ? static_cast<uint8_t>(static_cast<int8_t>(bounded)) : static_cast<uint8_t>(bounded));
}

float relu_of(float value, bool relu) { return relu && value < 0 ? 0.0f : value; }

template <typename Source>
void store_result(uint8_t *target, Source value, const FixpipeShape &shape, uint64_t scale_bits) {
    if (shape.quantization == Quantization::None) return store(target, shape.relu && value < 0 ? Source{0} : value);
    if (shape.quantization == Quantization::ToF16) return store(target, static_cast<half>(relu_of(static_cast<float>(value), shape.relu)));
    if (shape.quantization == Quantization::ToBf16) return store(target, bfloat16_t(relu_of(static_cast<float>(value), shape.relu)));
    const Scale scale(scale_bits);
    const float scaled = relu_of(static_cast<float>(value) * scale.factor, shape.relu);
    if (shape.quantization == Quantization::ScaledF16) return store(target, static_cast<half>(scaled));
    store_scaled_byte(target, scaled, scale, shape.result == ResultType::I8);
}

// Columns of a fractal of the result.
uint32_t fractal_width(const FixpipeShape &shape) {
    if (shape.to_rows) return shape.n;
    if (bytes_of(shape.result) == 1) return 2 * kSide;
    return shape.split_channels ? kSide / 2 : kSide;
}

// Result columns [first, first + count) of one row, one after another.
template <typename Source>
void convert_run(uint8_t *target, const Source *l0c, uint32_t row, uint32_t first, uint32_t count, const FixpipeShape &shape) {
    const uint32_t bytes = bytes_of(shape.result);
    for (uint32_t column = first; column < first + count; ++column) {
        uint64_t scale = shape.scale;
        if (shape.scales != nullptr) std::memcpy(&scale, shape.scales + uint64_t{8} * column, sizeof scale);
        const uint64_t index = (uint64_t{column / kSide} * shape.src_stride_rows + row) * kSide + column % kSide;
        store_result(target + uint64_t{column - first} * bytes, l0c[index], shape, scale);
    }
}

// Calls `put(offset in the destination, bytes, count)` for every run of results.
template <typename Put>
void for_each_run(const uint8_t *l0c, const FixpipeShape &shape, const Put &put) {
    static std::vector<uint8_t> run;
    const uint32_t bytes = bytes_of(shape.result);
    const uint32_t width = fractal_width(shape);
    run.resize(uint64_t{width} * bytes);
    for (uint32_t first = 0; first < shape.n; first += width) {
        const uint32_t count = std::min(width, shape.n - first);
        for (uint32_t row = 0; row < shape.m; ++row) {
            if (shape.integers) {
                convert_run(run.data(), reinterpret_cast<const int32_t *>(l0c), row, first, count, shape);
            } else {
                convert_run(run.data(), reinterpret_cast<const float *>(l0c), row, first, count, shape);
            }
            const uint64_t offset = shape.to_rows ? row * shape.dst_stride_bytes
                                                  : first / width * shape.dst_stride_bytes + uint64_t{row} * width * bytes;
            put(offset, run.data(), count * bytes);
        }
    }
}

// What the DataCopy forms take from registers.
void take_registers(FixpipeShape &shape) {
    if (!shape.by_registers) return;
    const CubeRegisters &cube = block().cube;
    shape.matrices = shape.to_rows ? cube.nd_matrices : 1;
    shape.src_matrix_stride_bytes = uint64_t{cube.nd_src_stride} * kSide * kSide * 4;
    shape.dst_matrix_stride_bytes = uint64_t{cube.nd_dst_stride} * bytes_of(shape.result);
    shape.scale = cube.quant_scale;
    shape.scales = shape.by_column ? cube.quant_scales : nullptr;
}

void check_numbers(const FixpipeShape &shape) {
    check_bursts("Fixpipe", {shape.matrices, shape.src_stride_rows}, {shape.src_matrix_stride_bytes, shape.dst_stride_bytes, shape.dst_matrix_stride_bytes});
    if (shape.m <= UINT16_MAX && shape.n <= UINT16_MAX && shape.result <= ResultType::U8 && shape.quantization <= Quantization::ScaledB8) return;
    fault(FaultKind::RuntimeFault, "Fixpipe", "%u x %u results: sizes have 16 bits, and types are those of the documentation", shape.m, shape.n);
}

void check_types(const FixpipeShape &shape) {
    const bool same = shape.integers ? shape.result == ResultType::I32 : shape.result == ResultType::F32;
    const bool fits = shape.quantization == Quantization::None        ? same
                      : shape.quantization == Quantization::ToF16     ? shape.result == ResultType::F16 && !shape.integers
                      : shape.quantization == Quantization::ToBf16    ? shape.result == ResultType::Bf16 && !shape.integers
                      : shape.quantization == Quantization::ScaledF16 ? shape.result == ResultType::F16
                                                                      : bytes_of(shape.result) == 1;
    if (!fits) {
        fault(FaultKind::RuntimeFault, "Fixpipe", "quantPre does not fit the element types: F322F16 and F322BF16 make half and bfloat16 of float, "
              "DEQF16 half of int32, QF322B8_PRE and REQ8 8 bit; NoQuant keeps float and int32");
    }
}

// Bursts of one matrix in the destination.
struct Bursts {
    uint32_t count;
    uint32_t bytes;
    uint64_t span;
};

Bursts bursts_of(const FixpipeShape &shape) {
    const uint32_t width = fractal_width(shape);
    const uint32_t count = shape.to_rows ? shape.m : (shape.n + width - 1) / width;
    const uint32_t bytes = bytes_of(shape.result) * (shape.to_rows ? shape.n : shape.m * width);
    return {count, bytes, (count - 1) * shape.dst_stride_bytes + bytes};
}

// Rows, or fractals, that lie over each other are written in any order.
void check_apart(const FixpipeShape &shape) {
    const Bursts bursts = bursts_of(shape);
    if (bursts.count < 2 || shape.dst_stride_bytes >= bursts.bytes) return;
    fault(FaultKind::RuntimeFault, "Fixpipe", "parts of %u bytes lie %llu bytes apart in dst: they overlap, use a dstStride that is no less", bursts.bytes,
          static_cast<unsigned long long>(shape.dst_stride_bytes));
}

uint64_t source_bytes(const FixpipeShape &shape) {
    const uint64_t columns = (shape.n + kSide - 1) / kSide;
    return ((columns - 1) * shape.src_stride_rows + shape.m) * kSide * 4;
}

void emit_result(Op op, Space space, uint64_t target, uint64_t source, const FixpipeShape &shape) {
    const Bursts bursts = bursts_of(shape);
    Record record{};
    record.op = op;
    record.dtype_bytes = static_cast<uint8_t>(bytes_of(shape.result));
    record.repeats = bursts.count;
    record.burst_bytes = bursts.bytes;
    const uint16_t atomic = op == Op::CopyL0cToGm ? atomic_flags(block().atomic) : 0;
    record.flag_id = static_cast<uint16_t>((shape.bypass_l2 ? kBypassesL2 : 0) | (shape.unit_flag ? kUnitFlag : 0) | atomic);
    emit(record, {{target, static_cast<uint64_t>(space), static_cast<uint32_t>(bursts.span), static_cast<uint32_t>(shape.dst_stride_bytes)},
                  {source, static_cast<uint64_t>(Space::L0C), static_cast<uint32_t>(source_bytes(shape)), 0}});
}

void check_scales(const FixpipeShape &shape) {
    if (shape.scales == nullptr) return;
    const Space space = shape.scales >= block().memories[static_cast<int>(Space::FixpipeBuffer)].base &&
                                shape.scales < block().memories[static_cast<int>(Space::FixpipeBuffer)].base +
                                                   block().memories[static_cast<int>(Space::FixpipeBuffer)].bytes
                            ? Space::FixpipeBuffer : Space::L1;
    checked_local("Fixpipe", "scales", space, shape.scales, uint64_t{8} * shape.n, kUbBlockBytes);
}

}  // namespace

void fixpipe_to_gm(uint8_t *gm, const uint8_t *l0c, FixpipeShape shape) {
    if (!on_cube_core() || shape.m == 0 || shape.n == 0) return;
    take_registers(shape);
    check_numbers(shape);
    check_types(shape);
    check_scales(shape);
    check_apart(shape);
    for (uint32_t i = 0; i < shape.matrices; ++i) {
        const uint8_t *from = l0c + i * shape.src_matrix_stride_bytes;
        uint8_t *to = gm + i * shape.dst_matrix_stride_bytes;
        const uint64_t source = checked_local("Fixpipe", "src", Space::L0C, from, source_bytes(shape), 64);
        const uint64_t target = checked_gm("Fixpipe", to, bursts_of(shape).span, true);
        for_each_run(from, shape, [&](uint64_t offset, const uint8_t *run, uint32_t bytes) {
            if (block().atomic == AtomicMode::None) {
                std::memcpy(to + offset, run, bytes);
            } else {
                accumulate(to + offset, run, bytes, shape.atomic_type);
            }
        });
        emit_result(Op::CopyL0cToGm, Space::Gm, target, source, shape);
    }
}

void fixpipe_to_l1(uint8_t *l1, const uint8_t *l0c, FixpipeShape shape) {
    if (!on_cube_core() || shape.m == 0 || shape.n == 0) return;
    take_registers(shape);
    check_numbers(shape);
    check_types(shape);
    check_scales(shape);
    check_apart(shape);
    const uint64_t source = checked_local("Fixpipe", "src", Space::L0C, l0c, source_bytes(shape), 64);
    const uint64_t target = checked_local("Fixpipe", "dst", Space::L1, l1, bursts_of(shape).span, kUbBlockBytes);
    for_each_run(l0c, shape, [&](uint64_t offset, const uint8_t *run, uint32_t bytes) { std::memcpy(l1 + offset, run, bytes); });
    emit_result(Op::CopyL0cToL1, Space::L1, target, source, shape);
}

}  // namespace asim
