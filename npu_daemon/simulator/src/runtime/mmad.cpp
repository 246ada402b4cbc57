#include "asim/semantics/mmad.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "asim/check/check.h"
#include "asim/machine/block.h"
#include "asim/numeric/types.h"
#include "asim/semantics/gemm.h"
#include "asim/trace/writer.h"

namespace asim {

namespace {

constexpr uint32_t kSide = 16;
constexpr uint32_t kHf32DroppedBits = 12;   // 11 of 23 bits of the fraction stay

uint32_t round_up(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit * unit; }

// Rounds to 11 bits of fraction; ties go to even or towards zero.
float to_hf32(float value, bool ties_to_zero) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7f800000u) == 0x7f800000u) return value;
    constexpr uint32_t kHalf = 1u << (kHf32DroppedBits - 1);
    const uint32_t odd = bits >> kHf32DroppedBits & 1u;
    bits += ties_to_zero ? kHalf - 1 : kHalf - 1 + odd;
    bits &= ~((1u << kHf32DroppedBits) - 1);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

template <typename Wide, typename T>
Wide widen(const uint8_t *source, uint64_t index, bool hf32) {
    T value;
    std::memcpy(&value, source + index * sizeof(T), sizeof(T));
    if constexpr (std::is_same_v<T, float>) return hf32 ? to_hf32(value, block().cube.hf32_ties_to_zero) : value;
    return static_cast<Wide>(value);
}

// Fractals of L0A, row by row of the matrix, as rows; a single row lies there as it is.
template <typename Wide, typename T>
void unpack_left(Wide *rows, const uint8_t *source, const MmadShape &shape, uint32_t depth, bool hf32) {
    constexpr uint32_t kLanes = kUbBlockBytes / sizeof(T);
    for (uint32_t i = 0; i < shape.m; ++i) {
        for (uint32_t j = 0; j < shape.k; ++j) {
            const uint64_t fractal = uint64_t{i / kSide} * (depth / kLanes) + j / kLanes;
            const uint64_t index = shape.m == 1 ? j : fractal * kSide * kLanes + i % kSide * kLanes + j % kLanes;
            rows[uint64_t{i} * shape.k + j] = widen<Wide, T>(source, index, hf32);
        }
    }
}

// Fractals of L0B, each with 16 columns of the matrix along k, as rows.
template <typename Wide, typename T>
void unpack_right(Wide *rows, const uint8_t *source, const MmadShape &shape, bool hf32) {
    constexpr uint32_t kLanes = kUbBlockBytes / sizeof(T);
    const uint32_t across = round_up(shape.n, kSide) / kSide;
    for (uint32_t i = 0; i < shape.k; ++i) {
        for (uint32_t j = 0; j < shape.n; ++j) {
            const uint64_t fractal = uint64_t{i / kLanes} * across + j / kSide;
            rows[uint64_t{i} * shape.n + j] = widen<Wide, T>(source, fractal * kSide * kLanes + j % kSide * kLanes + i % kLanes, hf32);
        }
    }
}

template <typename Wide>
void unpack(std::vector<Wide> &a, std::vector<Wide> &b, const uint8_t *left, const uint8_t *right, const MmadShape &shape, uint32_t depth) {
    const bool hf32 = block().cube.hf32;
    switch (shape.a) {
        case MatrixType::F16: unpack_left<Wide, half>(a.data(), left, shape, depth, hf32); break;
        case MatrixType::Bf16: unpack_left<Wide, bfloat16_t>(a.data(), left, shape, depth, hf32); break;
        case MatrixType::F32: unpack_left<Wide, float>(a.data(), left, shape, depth, hf32); break;
        case MatrixType::I8: unpack_left<Wide, int8_t>(a.data(), left, shape, depth, hf32); break;
        case MatrixType::U8: unpack_left<Wide, uint8_t>(a.data(), left, shape, depth, hf32); break;
        case MatrixType::I4: break;     // refused before
    }
    switch (shape.b) {
        case MatrixType::F16: unpack_right<Wide, half>(b.data(), right, shape, hf32); break;
        case MatrixType::Bf16: unpack_right<Wide, bfloat16_t>(b.data(), right, shape, hf32); break;
        case MatrixType::F32: unpack_right<Wide, float>(b.data(), right, shape, hf32); break;
        case MatrixType::I8: unpack_right<Wide, int8_t>(b.data(), right, shape, hf32); break;
        case MatrixType::U8: unpack_right<Wide, uint8_t>(b.data(), right, shape, hf32); break;
        case MatrixType::I4: break;
    }
}

uint64_t result_index(const MmadShape &shape, uint32_t row, uint32_t column) {
    return uint64_t{column / kSide} * round_up(shape.m, kSide) * kSide + row * kSide + column % kSide;
}

template <typename Wide>
void multiply(Wide *c, const uint8_t *left, const uint8_t *right, const Wide *bias, const MmadShape &shape, uint32_t depth) {
    static std::vector<Wide> a, b, rows;
    a.resize(uint64_t{shape.m} * shape.k);
    b.resize(uint64_t{shape.k} * shape.n);
    rows.assign(uint64_t{shape.m} * shape.n, Wide{0});
    unpack(a, b, left, right, shape, depth);
    for (uint32_t i = 0; i < shape.m && shape.start != MatrixStart::Zero; ++i) {
        for (uint32_t j = 0; j < shape.n; ++j) {
            rows[uint64_t{i} * shape.n + j] = shape.start == MatrixStart::Bias ? bias[j] : c[result_index(shape, i, j)];
        }
    }
    gemm(rows.data(), shape.n, a.data(), shape.k, b.data(), shape.n, {shape.m, shape.n, shape.k});
    for (uint32_t i = 0; i < shape.m; ++i) {
        for (uint32_t j = 0; j < shape.n; ++j) c[result_index(shape, i, j)] = rows[uint64_t{i} * shape.n + j];
    }
}

// Elements along k that the fractals hold.
uint32_t padded_depth(const MmadShape &shape) {
    return round_up(shape.k, shape.wide_k ? kSide : kUbBlockBytes / element_bytes(shape.a));
}

Operand operand(Space space, uint64_t address, uint64_t bytes) {
    return {address, static_cast<uint64_t>(space), static_cast<uint32_t>(bytes), 0};
}

uint64_t result_bytes(const MmadShape &shape) { return uint64_t{4} * round_up(shape.m, kSide) * round_up(shape.n, kSide); }
uint64_t left_bytes(const MmadShape &shape) {
    return shape.m == 1 ? uint64_t{shape.k} * element_bytes(shape.a) : uint64_t{round_up(shape.m, kSide)} * padded_depth(shape) * element_bytes(shape.a);
}
uint64_t right_bytes(const MmadShape &shape) { return uint64_t{round_up(shape.n, kSide)} * padded_depth(shape) * element_bytes(shape.b); }

void check_shape(const MmadShape &shape) {
    if (shape.a == MatrixType::I4 || shape.b == MatrixType::I4) {
        fault(FaultKind::Unsupported, "Mmad", "matrices of 4-bit integers are not simulated");
    }
    if (shape.a > MatrixType::I4 || shape.b > MatrixType::I4 || shape.start > MatrixStart::Bias || element_bytes(shape.a) != element_bytes(shape.b)) {
        fault(FaultKind::RuntimeFault, "Mmad", "both matrices have elements of one width, of a type that exists");
    }
    if (std::max({shape.m, shape.n, shape.k}) > UINT16_MAX) fault(FaultKind::RuntimeFault, "Mmad", "%u x %u x %u elements: sizes have 16 bits", shape.m, shape.n, shape.k);
}

void emit_mmad(const MmadShape &shape, uint64_t c, uint64_t a, uint64_t b, std::optional<uint64_t> bias) {
    Record record{};
    record.op = Op::Mmad;
    record.dtype_bytes = static_cast<uint8_t>(element_bytes(shape.a));
    record.repeats = round_up(shape.m, kSide) / kSide * (round_up(shape.n, kSide) / kSide);
    record.burst_bytes = padded_depth(shape) * element_bytes(shape.a);
    record.flag_id = static_cast<uint16_t>((shape.unit_flag ? kUnitFlag : 0) | (shape.start == MatrixStart::Accumulate ? kAccumulates : 0) |
                                           (shape.a == MatrixType::F32 && block().cube.hf32 ? kMmadHf32 : 0));
    const Operand result = operand(Space::L0C, c, result_bytes(shape)), left = operand(Space::L0A, a, left_bytes(shape)),
                  right = operand(Space::L0B, b, right_bytes(shape));
    if (bias) return emit(record, {result, left, right, operand(Space::BiasTable, *bias, uint64_t{4} * shape.n)});
    emit(record, {result, left, right});
}

}  // namespace

void mmad(uint8_t *c, const uint8_t *a, const uint8_t *b, const uint8_t *bias, MmadShape shape) {
    if (!on_cube_core() || shape.m == 0 || shape.n == 0 || shape.k == 0) return;
    check_shape(shape);
    if (bias == nullptr) bias = block().memories[static_cast<int>(Space::BiasTable)].base;
    const uint64_t result = checked_local("Mmad", "dst", Space::L0C, c, result_bytes(shape), 1024);
    const uint64_t left = checked_local("Mmad", "fm", Space::L0A, a, left_bytes(shape), 512);
    const uint64_t right = checked_local("Mmad", "filter", Space::L0B, b, right_bytes(shape), 512);
    std::optional<uint64_t> table;
    if (shape.start == MatrixStart::Bias) table = checked_local("Mmad", "bias", Space::BiasTable, bias, uint64_t{4} * shape.n, 64);
    if (element_bytes(shape.a) == 1) {
        multiply(reinterpret_cast<int32_t *>(c), a, b, reinterpret_cast<const int32_t *>(bias), shape, padded_depth(shape));
    } else {
        multiply(reinterpret_cast<float *>(c), a, b, reinterpret_cast<const float *>(bias), shape, padded_depth(shape));
    }
    emit_mmad(shape, result, left, right, table);
}

}  // namespace asim
