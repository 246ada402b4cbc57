// The Matmul object at work: what it multiplies, how far it has got, and what that makes the cube core do.
//
// Results come from whole blocks of the matrices at once. What a cube core would be told (copies to L1 and L0, multiplications of
// base blocks, copies out of L0C) goes into its trace block by block, as the plan says.
#pragma once
#include <cstdint>

#include "asim/semantics/gemm.h"
#include "asim/semantics/matrix.h"

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
    bool n_first = false;
};

// Which parts of an operand lie in L1, each of some base blocks: those that stay while their rows are multiplied, and the latest
// of a few.
struct L1Cache {
    static constexpr uint32_t kMostParts = 64;

    uint32_t capacity = 1;
    uint32_t resident = 0;              // places of parts that stay
    uint32_t resident_rows = 0;         // where their rows begin, and 1; 0 for none
    bool resident_filled = false;       // some have been copied since all were given up
    uint32_t next = 0;
    uint64_t parts[kMostParts] = {};    // 0 for none
    bool emptied[kMostParts] = {};      // MTE1 has raised the flag that it is done with the part
    bool copying[kMostParts] = {};      // MTE1 has not waited for the copy of it
};

// Whether the operand of the next rows or columns of the result is asked for before these are multiplied; numbers of doMTE2Preload.
enum class MatmulPreload : uint8_t { None, Rows, Columns };

struct MatmulState {
    // the problem: original extents are those of the whole matrices, `single` is what this core computes
    StoredMatrix a, b, bias, result;
    bool has_bias = false;
    uint64_t original_m = 0, original_n = 0, original_ka = 0, original_kb = 0, original_kc = 0;
    GemmExtents single{0, 0, 0};
    MatmulBlocks blocks;
    ResultStore store;
    bool hf32 = false;
    bool hf32_ties_away = false;
    // the template
    bool one_block_a_copy = false;      // from global memory: the Norm template
    MatmulPreload preload = MatmulPreload::None;
    bool unit_flag = false;
    bool keeps_left = false;            // all of the left operand stays in L1
    bool staggers_k = false;            // each core starts its sums at a place of its own along k
    // Calls of a vector core are handed to the cube core of its group; if not, they do nothing there.
    bool delegates = false;
    bool shared_by_group = false;   // what the first vector core of a group multiplies is for all of them
    // progress
    uint32_t next_block = 0;
    bool asynchronous = false;
    uint32_t unread_results = 0;        // of calls that are to be waited for
    uint8_t *cached_results = nullptr;  // workspace for blocks that are fetched later
    uint64_t cached_bytes = 0;
    void *sums = nullptr;               // the block in L0C, in rows of base.n
    uint64_t sums_elements = 0;
    // the trace
    L1Cache cache_a, cache_b;
    uint32_t l1_offset = 0;
    uint32_t turn_a = 0, turn_b = 0, turn_c = 0;
    bool l0_emptied[2] = {};            // likewise the cube with a half of L0A and L0B
};

// Where a result goes: all of it, or the latest block; `sequential` writes blocks as matrices of their own.
struct MatmulTarget {
    uint8_t *base = nullptr;
    Space space = Space::Gm;
    bool bypass_l2 = false;
    bool sequential = false;
    AtomicMode atomic = AtomicMode::None;
};

enum class MatmulWait : uint8_t { Now, Later, Never };

// The matrices have changed: start with the first block.
void matmul_restart(MatmulState &state);
// Computes the next block in L0C, on top of what is there if so asked. False when there is none left.
bool matmul_iterate(MatmulState &state, bool accumulate, bool asynchronous);
// Copies the block in L0C out; of asynchronous iterations the next one.
void matmul_fetch(MatmulState &state, const MatmulTarget &target);
// The next asynchronous block in the workspace for it; its address.
uint8_t *matmul_fetch_cached(MatmulState &state);
// Computes and copies out all blocks.
void matmul_all(MatmulState &state, const MatmulTarget &target, MatmulWait wait);
// As many multiplications as there are more batches of; batch i takes batch i of each operand, modulo their number. Strides in
// elements, 0 where matrices lie side by side.
struct MatmulBatches {
    uint32_t a, b;
    uint64_t stride_a, stride_b, stride_c;
};
void matmul_batches(MatmulState &state, const MatmulTarget &target, const MatmulBatches &batches, MatmulWait wait);
void matmul_wait(MatmulState &state);
void matmul_release(MatmulState &state);

// True on a cube core that works for the vector cores of its group.
bool serves_vector_cores();

}  // namespace asim
