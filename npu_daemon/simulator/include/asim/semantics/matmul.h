// The Matmul object as a kernel describes it: what it multiplies and how. How far it has got is kept for it, under a number.
#pragma once
#define ASIM_READ_FIRST     // an error behind text of kernels, whose macros would apply here (kernel_ir/headers.py)
#include <cstdint>

#include "asim/machine/export.h"
#include "asim/semantics/stored_matrix.h"

namespace asim {

// How a core cuts its part: the fields of TCubeTiling that say so. Extents in elements, steps and depths in base blocks.
struct MatmulBlocks {
    GemmExtents base{16, 16, 16};
    uint32_t step_m = 1;
    uint32_t step_n = 1;
    uint32_t step_ka = 1;
    uint32_t step_kb = 1;
    uint32_t depth_a1 = 1;
    uint32_t depth_b1 = 1;
    uint32_t l0a_buffers = 1;
    uint32_t l0b_buffers = 1;
    uint32_t l0c_buffers = 1;
    Flag n_first = false;
};

// Whether the operand of the next rows or columns of the result is asked for before these are multiplied; numbers of doMTE2Preload.
enum class MatmulPreload : uint8_t { None, Rows, Columns };

struct MatmulProblem {
    // original extents are those of the whole matrices, `single` is what this core computes
    StoredMatrix a, b, bias, result;
    Flag has_bias = false;
    uint64_t original_m = 0, original_n = 0, original_ka = 0, original_kb = 0, original_kc = 0;
    GemmExtents single{0, 0, 0};
    MatmulBlocks blocks;
    Requantisation quantisation;
    Flag relu = false;
    Flag hf32 = false;
    Flag hf32_ties_away = false;
    // the template
    Flag one_block_a_copy = false;      // from global memory: the Norm template
    MatmulPreload preload = MatmulPreload::None;
    Flag unit_flag = false;
    Flag keeps_left = false;            // all of the left operand stays in L1
    Flag staggers_k = false;            // each core starts its sums at a place of its own along k
    // Calls of a vector core are handed to the cube core of its group; if not, they do nothing there.
    Flag delegates = false;
    Flag shared_by_group = false;       // what the first vector core of a group multiplies is for all of them
    uint8_t *cached_results = nullptr;  // workspace for blocks that are fetched later
};

// Where a result goes: all of it, or the latest block; `sequential` writes blocks as matrices of their own.
struct MatmulTarget {
    uint8_t *base = nullptr;
    Space space = Space::Gm;
    Flag bypass_l2 = false;
    Flag sequential = false;
    AtomicMode atomic = AtomicMode::None;
};

enum class MatmulWait : uint8_t { Now, Later, Never };

// As many multiplications as there are more batches of; batch i takes batch i of each operand, modulo their number. Strides in
// elements, 0 where matrices lie side by side.
struct MatmulBatches {
    uint32_t a, b;
    uint64_t stride_a, stride_b, stride_c;
};

// A new object; its number.
ASIM_API uint32_t matmul_create();
ASIM_API void matmul_destroy(uint32_t object);
// The matrices have changed: start with the first block.
ASIM_API void matmul_restart(uint32_t object);
// Computes the next block in L0C, on top of what is there if so asked. False when there is none left.
ASIM_API bool matmul_iterate(uint32_t object, MatmulProblem problem, bool accumulate, bool asynchronous);
// Copies the block in L0C out; of asynchronous iterations the next one, unless it is to be `again` the latest.
ASIM_API void matmul_fetch(uint32_t object, MatmulProblem problem, MatmulTarget target, bool again);
// The next asynchronous block in the workspace for it; its address.
ASIM_API uint8_t *matmul_fetch_cached(uint32_t object, MatmulProblem problem);
// Computes and copies out all blocks.
ASIM_API void matmul_all(uint32_t object, MatmulProblem problem, MatmulTarget target, MatmulWait wait);
ASIM_API void matmul_batches(uint32_t object, MatmulProblem problem, MatmulTarget target, MatmulBatches batches, MatmulWait wait);
ASIM_API void matmul_wait(uint32_t object);

}  // namespace asim
