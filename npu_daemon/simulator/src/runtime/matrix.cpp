#include "asim/semantics/matrix.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "asim/check/check.h"
#include "asim/machine/fault.h"
#include "asim/machine/gm.h"
#include "asim/numeric/types.h"

namespace asim {

namespace {

constexpr uint32_t kPaddedRowBytes = 32;
constexpr uint32_t kScaleMask = 0xffffe000u;    // SetQuantScalar: 19 bits of the factor
constexpr uint32_t kOffsetBit = 37;             // and 9 bits of the offset
constexpr uint32_t kHf32DroppedBits = 12;

struct FourBits {};

template <typename Work>
void with_type(NumberType type, Work work) {
    switch (type) {
        case NumberType::F32: return work(float{});
        case NumberType::F16: return work(half{});
        case NumberType::Bf16: return work(bfloat16_t{});
        case NumberType::I32: return work(int32_t{});
        case NumberType::I8: return work(int8_t{});
        case NumberType::I4: return work(FourBits{});
    }
}

template <typename T, typename Number>
Number element(const uint8_t *base, uint32_t index) {
    if constexpr (std::is_same_v<T, FourBits>) {
        const int32_t bits = base[index / 2] >> (index % 2 * 4) & 15;
        return static_cast<Number>(bits < 8 ? bits : bits - 16);
    } else {
        T value;
        std::memcpy(&value, base + size_t{index} * sizeof(T), sizeof(T));
        return static_cast<Number>(value);
    }
}

// Elements of one row that lie side by side from `column` on.
uint32_t run_length(const StoredMatrix &matrix, uint32_t column, uint32_t wanted) {
    if (matrix.layout != MatrixLayout::Fractals) return wanted;
    return std::min(wanted, matrix.fractal_columns - column % matrix.fractal_columns);
}

// Calls `work(run of a row, its row and column within the part, its length)` for the whole part.
template <typename Work>
void for_each_run(const StoredMatrix &matrix, const MatrixPart &part, Work work) {
    for (uint32_t column = 0; column < part.columns;) {
        const uint32_t length = run_length(matrix, part.column + column, part.columns - column);
        for (uint32_t row = 0; row < part.rows; ++row) {
            work(matrix.base + offset_of(matrix, part.row + row, part.column + column), row, column, length);
        }
        column += length;
    }
}

template <typename Number>
void read_numbers(const StoredMatrix &matrix, const MatrixPart &part, Number *target, size_t target_row, bool exchange) {
    with_type(matrix.type, [&](auto type) {
        using T = decltype(type);
        for_each_run(matrix, part, [&](const uint8_t *run, uint32_t row, uint32_t column, uint32_t length) {
            if (exchange) {
                for (uint32_t i = 0; i < length; ++i) target[(column + i) * target_row + row] = element<T, Number>(run, i);
            } else {
                Number *const to = target + row * target_row + column;
                for (uint32_t i = 0; i < length; ++i) to[i] = element<T, Number>(run, i);
            }
        });
    });
}

// Factor and offset of one parameter of SetQuantScalar or SetQuantVector.
struct Scaling {
    float factor;
    int32_t offset;
};

Scaling scaling_of(uint64_t parameter) {
    const auto bits = static_cast<uint32_t>(parameter) & kScaleMask;
    Scaling scaling;
    std::memcpy(&scaling.factor, &bits, sizeof scaling.factor);
    const auto offset = static_cast<int32_t>(parameter >> kOffsetBit & 0x1ff);
    scaling.offset = offset < 256 ? offset : offset - 512;
    return scaling;
}

template <typename T>
T saturated(float value) {
    const float rounded = std::nearbyint(value);
    return static_cast<T>(std::min(std::max(rounded, -128.0f), 127.0f));
}

template <typename T, typename Sum>
T result(Sum sum, const ResultStore &store, uint64_t parameter) {
    if (store.relu && sum < 0) sum = 0;
    if (!store.quantisation.enabled) {
        if constexpr (std::is_same_v<T, int8_t>) return saturated<T>(static_cast<float>(sum));
        return static_cast<T>(sum);
    }
    const Scaling scaling = scaling_of(parameter);
    const float scaled = static_cast<float>(sum) * scaling.factor;
    if constexpr (std::is_same_v<T, int8_t>) return saturated<T>(scaled + static_cast<float>(scaling.offset));
    return static_cast<T>(scaled);
}

template <typename T>
T combined(T old, T value, AtomicMode mode) {
    switch (mode) {
        case AtomicMode::Add: return static_cast<T>(old + value);
        case AtomicMode::Max: return old > value ? old : value;
        case AtomicMode::Min: return old < value ? old : value;
        default: return value;
    }
}

template <typename T, typename Sum>
void write_run(uint8_t *run, const Sum *sums, uint32_t length, uint32_t column, const ResultStore &store) {
    const Requantisation &quantisation = store.quantisation;
    for (uint32_t i = 0; i < length; ++i) {
        const uint64_t parameter = quantisation.vector ? quantisation.vector[store.first_column + column + i] : quantisation.scalar;
        T value = result<T>(sums[i], store, parameter), old;
        std::memcpy(&old, run + size_t{i} * sizeof(T), sizeof(T));
        value = combined(old, value, store.atomic);
        std::memcpy(run + size_t{i} * sizeof(T), &value, sizeof(T));
    }
}

template <typename Sum>
void write_sums(const StoredMatrix &matrix, const MatrixPart &part, const Sum *sums, size_t sums_row, const ResultStore &store) {
    with_type(matrix.type, [&](auto type) {
        using T = decltype(type);
        if constexpr (std::is_same_v<T, FourBits>) {
            fault(FaultKind::Unsupported, "Matmul", "results of four bits are not simulated");
        } else {
            for_each_run(matrix, part, [&](uint8_t *run, uint32_t row, uint32_t column, uint32_t length) {
                write_run<T>(run, sums + row * sums_row + column, length, column, store);
            });
        }
    });
}

}  // namespace

uint32_t type_bits(NumberType type) {
    switch (type) {
        case NumberType::F32:
        case NumberType::I32: return 32;
        case NumberType::F16:
        case NumberType::Bf16: return 16;
        case NumberType::I8: return 8;
        default: return 4;
    }
}

uint64_t offset_of(const StoredMatrix &matrix, uint64_t row, uint64_t column) {
    const uint64_t bits = type_bits(matrix.type);
    if (matrix.layout == MatrixLayout::Fractals) {
        const uint64_t width = matrix.fractal_columns;
        const uint64_t rows = (matrix.rows + kFractalRows - 1) / kFractalRows * kFractalRows;
        return (column / width * rows * width + row * width + column % width) * bits / 8;
    }
    uint64_t row_bits = matrix.columns * bits;
    if (matrix.layout == MatrixLayout::PaddedRows) row_bits = (row_bits + kPaddedRowBytes * 8 - 1) / (kPaddedRowBytes * 8) * kPaddedRowBytes * 8;
    return (row * row_bits + column * bits) / 8;
}

uint64_t span_of(const StoredMatrix &matrix, const MatrixPart &part) {
    if (part.rows == 0 || part.columns == 0) return 0;
    const uint64_t last = offset_of(matrix, part.row + part.rows - 1, part.column + part.columns - 1);
    return last + (type_bits(matrix.type) + 7) / 8 - offset_of(matrix, part.row, part.column);
}

uint64_t checked_part(const char *call, const StoredMatrix &matrix, const MatrixPart &part, bool write) {
    const uint8_t *first = matrix.base + offset_of(matrix, part.row, part.column);
    const uint64_t bytes = span_of(matrix, part);
    if (bytes == 0) return 0;
    if (matrix.space == Space::Gm) return checked_gm(call, first, bytes, write);
    if (matrix.space == Space::Ub) return checked_ub(call, first, bytes);
    return checked_local(call, "operand", matrix.space, first, bytes, kPaddedRowBytes);
}

void read_part(const StoredMatrix &matrix, const MatrixPart &part, float *target, size_t target_row, bool exchange) {
    read_numbers(matrix, part, target, target_row, exchange);
}

void read_part(const StoredMatrix &matrix, const MatrixPart &part, int32_t *target, size_t target_row, bool exchange) {
    read_numbers(matrix, part, target, target_row, exchange);
}

std::vector<uint8_t> bytes_of(const StoredMatrix &matrix, const MatrixPart &part) {
    std::vector<uint8_t> bytes;
    for_each_run(matrix, part, [&](const uint8_t *run, uint32_t, uint32_t, uint32_t length) {
        bytes.insert(bytes.end(), run, run + (uint64_t{length} * type_bits(matrix.type) + 7) / 8);
    });
    return bytes;
}

void write_part(const StoredMatrix &matrix, const MatrixPart &part, const float *sums, size_t sums_row, const ResultStore &store) {
    write_sums(matrix, part, sums, sums_row, store);
}

void write_part(const StoredMatrix &matrix, const MatrixPart &part, const int32_t *sums, size_t sums_row, const ResultStore &store) {
    write_sums(matrix, part, sums, sums_row, store);
}

void round_to_hf32(float *values, size_t count, bool ties_away) {
    constexpr uint32_t kHalf = 1u << (kHf32DroppedBits - 1);
    for (size_t i = 0; i < count; ++i) {
        uint32_t bits;
        std::memcpy(&bits, values + i, sizeof bits);
        if ((bits & 0x7f800000u) == 0x7f800000u) continue;
        const uint32_t odd = bits >> kHf32DroppedBits & 1u;
        bits += ties_away ? kHalf : kHalf - 1 + odd;
        bits &= ~((1u << kHf32DroppedBits) - 1);
        std::memcpy(values + i, &bits, sizeof bits);
    }
}

}  // namespace asim
