// The inner product of the cube unit: c += a * b on row-major matrices, distances between rows in elements.
//
// Each element of c adds its products in the order of k, without fused multiply-adds: results do not depend on the
// vector width of the host.
#pragma once
#include <cstddef>
#include <cstdint>

#include "asim/semantics/stored_matrix.h"

namespace asim {

void gemm(float *c, size_t c_row, const float *a, size_t a_row, const float *b, size_t b_row, GemmExtents extents);
// Sums wrap as 32-bit numbers do.
void gemm(int32_t *c, size_t c_row, const int32_t *a, size_t a_row, const int32_t *b, size_t b_row, GemmExtents extents);

// From here on gemm leaves c as it is: for runs that are only priced, which does not depend on values.
void skip_products();

}  // namespace asim
