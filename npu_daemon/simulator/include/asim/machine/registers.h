// Registers that kernels set and read.
#pragma once
#include <cstdint>

#include "asim/machine/cube_registers.h"
#include "asim/machine/export.h"
#include "asim/machine/units.h"

namespace asim {

// The vector mask register.
ASIM_API bool counter_mode();
ASIM_API uint64_t mask_low();
ASIM_API uint64_t mask_high();
ASIM_API void set_counter_mode(bool counts);
ASIM_API void keep_mask(uint64_t low, uint64_t high);
ASIM_API void keep_leading_mask(uint64_t lanes);    // in counter mode the number of elements
ASIM_API void reset_mask();                         // all lanes, normal mode

// How copies to global memory combine.
ASIM_API void set_atomic(AtomicMode mode);

// What SetStoreAtomicConfig has said last.
ASIM_API void note_store_atomic(uint16_t type);
ASIM_API uint16_t noted_store_atomic();

// Watches the unified buffer from behind block `start` to the end of block `end` (CheckLocalMemoryIA): an access of one of `kinds`, bits for
// reads and writes of the scalar unit, of vector instructions and of copies, ends the run.
ASIM_API void watch_memory(uint32_t which, uint32_t start, uint32_t end, uint32_t kinds);

// What padded copies fill in that give no value of their own.
ASIM_API void set_padding(uint64_t bits);

ASIM_API void set_deq_scale(uint64_t bits);
// The scales are in the unified buffer, from a data block on.
ASIM_API void set_deq_table(const uint8_t *table);

// An instruction of the scalar unit that reads what a vector instruction left behind. It has to come after that one, which automatic
// synchronisation sees to where it is on. What was read, the functions below return.
ASIM_API void read_register(VectorRegister which);

// What instructions left behind: bits of the last maximum or minimum over a whole instruction, and its index; of the last
// accumulating sum; elements that the last GatherMask kept; records that the last MrgSort with parameters took from a queue.
ASIM_API uint32_t reduced_value();
ASIM_API uint32_t reduced_index();
ASIM_API uint32_t accumulated_bits();
ASIM_API uint64_t gathered_count();
ASIM_API uint32_t merged_count(uint32_t queue);

// VA0 to VA7: eight addresses of data blocks each.
ASIM_API void set_address_register(uint32_t which, const uint64_t *addresses);

// Of a cube core.
ASIM_API void set_feature_map(bool right_matrix, FeatureMap map);
ASIM_API void set_load_padding(uint64_t bits);
ASIM_API void set_load_boundary(uint32_t bytes);
ASIM_API void set_load_repeat(uint32_t repeats, uint32_t stride, uint32_t mode);
ASIM_API void set_hf32(bool enabled);
ASIM_API void set_hf32_ties_to_zero(bool enabled);
ASIM_API void set_nz2nd(uint16_t matrices, uint16_t src_stride, uint16_t dst_stride);
ASIM_API void set_quant_scale(uint64_t scale);
ASIM_API void set_quant_scales(const uint8_t *scales);

}  // namespace asim
