// Blocked matrix multiplication: panels of b are copied so that they stay in cache, and a few rows of c are kept in
// registers while k advances.
#include "asim/semantics/gemm.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

namespace asim {

namespace {

constexpr uint32_t kLanes = 8;
constexpr uint32_t kVectors = 2;
constexpr uint32_t kColumns = kLanes * kVectors;    // of one register block
constexpr uint32_t kRows = 6;
constexpr uint32_t kDepth = 256;                    // of one panel of b
constexpr uint32_t kPanels = 16;                    // panels of b that are packed together: 256 KiB

// Vectors of the compiler: where the host has shorter ones it splits them, with the same results. Integers are unsigned
// underneath, so that sums wrap.
template <typename T>
struct Vector {
    using Lane = std::conditional_t<std::is_same_v<T, float>, float, uint32_t>;
    typedef Lane Type __attribute__((vector_size(kLanes * sizeof(Lane)), aligned(4), may_alias));
};

template <typename T>
struct Panel {
    const T *a;
    size_t a_row;
    const T *b;         // packed: kColumns elements for each k
    T *c;
    size_t c_row;
    uint32_t depth;
};

template <typename T, uint32_t rows>
void multiply_rows(const Panel<T> &panel) {
    using Type = typename Vector<T>::Type;
    using Lane = typename Vector<T>::Lane;
    Type sums[rows][kVectors];
    for (uint32_t row = 0; row < rows; ++row) {
        for (uint32_t v = 0; v < kVectors; ++v) {
            sums[row][v] = *reinterpret_cast<const Type *>(panel.c + row * panel.c_row + v * kLanes);
        }
    }
    for (uint32_t k = 0; k < panel.depth; ++k) {
        const auto *b = reinterpret_cast<const Type *>(panel.b + size_t{k} * kColumns);
        for (uint32_t row = 0; row < rows; ++row) {
            const auto factor = static_cast<Lane>(panel.a[row * panel.a_row + k]);
            for (uint32_t v = 0; v < kVectors; ++v) sums[row][v] += b[v] * factor;
        }
    }
    for (uint32_t row = 0; row < rows; ++row) {
        for (uint32_t v = 0; v < kVectors; ++v) {
            *reinterpret_cast<Type *>(panel.c + row * panel.c_row + v * kLanes) = sums[row][v];
        }
    }
}

template <typename T>
void multiply_some_rows(const Panel<T> &panel, uint32_t rows) {
    switch (rows) {
        case 6: return multiply_rows<T, 6>(panel);
        case 5: return multiply_rows<T, 5>(panel);
        case 4: return multiply_rows<T, 4>(panel);
        case 3: return multiply_rows<T, 3>(panel);
        case 2: return multiply_rows<T, 2>(panel);
        default: return multiply_rows<T, 1>(panel);
    }
}

// Fewer than kColumns columns of c are worked on in a copy.
template <typename T>
void multiply_columns(Panel<T> panel, uint32_t rows, uint32_t columns) {
    if (columns == kColumns) return multiply_some_rows(panel, rows);
    T copy[kRows * kColumns] = {};
    T *const c = panel.c;
    for (uint32_t row = 0; row < rows; ++row) std::memcpy(copy + row * kColumns, c + row * panel.c_row, columns * sizeof(T));
    const size_t c_row = panel.c_row;
    panel.c = copy;
    panel.c_row = kColumns;
    multiply_some_rows(panel, rows);
    for (uint32_t row = 0; row < rows; ++row) std::memcpy(c + row * c_row, copy + row * kColumns, columns * sizeof(T));
}

template <typename T>
void pack(T *packed, const T *b, size_t b_row, uint32_t depth, uint32_t columns) {
    for (uint32_t k = 0; k < depth; ++k) {
        std::memcpy(packed + size_t{k} * kColumns, b + k * b_row, columns * sizeof(T));
        std::fill(packed + size_t{k} * kColumns + columns, packed + size_t{k + 1} * kColumns, T{0});
    }
}

template <typename T>
void multiply(T *c, size_t c_row, const T *a, size_t a_row, const T *b, size_t b_row, GemmExtents extents) {
    static std::vector<T> packed(size_t{kPanels} * kDepth * kColumns);
    constexpr uint32_t kStride = kPanels * kColumns;
    for (uint32_t n0 = 0; n0 < extents.n; n0 += kStride) {
        const uint32_t width = std::min(kStride, extents.n - n0);
        for (uint32_t k0 = 0; k0 < extents.k; k0 += kDepth) {
            const uint32_t depth = std::min(kDepth, extents.k - k0);
            for (uint32_t n = 0; n < width; n += kColumns) {
                pack(&packed[size_t{n} * kDepth], b + k0 * b_row + n0 + n, b_row, depth, std::min(kColumns, width - n));
            }
            for (uint32_t m = 0; m < extents.m; m += kRows) {
                const uint32_t rows = std::min(kRows, extents.m - m);
                for (uint32_t n = 0; n < width; n += kColumns) {
                    const Panel<T> panel{a + m * a_row + k0, a_row, &packed[size_t{n} * kDepth], c + m * c_row + n0 + n, c_row, depth};
                    multiply_columns(panel, rows, std::min(kColumns, width - n));
                }
            }
        }
    }
}

bool g_products_skipped = false;

}  // namespace

void skip_products() { g_products_skipped = true; }

void gemm(float *c, size_t c_row, const float *a, size_t a_row, const float *b, size_t b_row, GemmExtents extents) {
    if (g_products_skipped) return;
    multiply(c, c_row, a, a_row, b, b_row, extents);
}

void gemm(int32_t *c, size_t c_row, const int32_t *a, size_t a_row, const int32_t *b, size_t b_row, GemmExtents extents) {
    if (g_products_skipped) return;
    multiply(c, c_row, a, a_row, b, b_row, extents);
}

}  // namespace asim
