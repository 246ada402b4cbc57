// Rows filled from one data block each.
#pragma once
#include <cstdint>

namespace asim {

// Rows of `blocks_per_row` data blocks, one after another, each filled from one block of `blocks`.
template <typename Bits>
void spread_rows(uint8_t *dst, uint8_t *blocks, uint32_t rows, uint32_t blocks_per_row);

}  // namespace asim
