// Planning of one matrix multiplication: how it is cut over cores, and over the memories of one core.
#pragma once

#include <cstdint>
#include <optional>

namespace asim::host {

// Three extents in elements; -1 where nothing was said.
struct Extents {
    int32_t m = -1;
    int32_t n = -1;
    int32_t k = -1;
};

// Bytes of the memories that a plan may fill.
struct CubeMemories {
    int64_t l1 = 0;
    int64_t l0a = 0;
    int64_t l0b = 0;
    int64_t l0c = 0;
    int64_t bias_table = 0;
    int64_t ub = 0;
};

struct MatmulProblem {
    Extents shape;          // what is multiplied, by all cores together
    Extents single;         // part of one core, where it is given
    Extents least_single;
    Extents most_single;
    Extents aligned_single; // multiples that parts of a core must be of
    Extents base;           // block of one instruction, where it is given
    Extents least_base;
    Extents most_base;
    double a_bytes = 2;     // per element; half a byte for four-bit numbers
    double b_bytes = 2;
    double c_bytes = 4;
    double bias_bytes = 4;
    bool has_bias = false;
    bool result_in_ub = false;
    bool may_split_k = false;
    bool a_transposed = false;
    bool b_transposed = false;
    std::optional<bool> n_first;    // blocks are visited along n before m; nothing leaves the choice to the planner
    bool keeps_left = false;    // a core's rows are at most three blocks, which stay in L1 (N_BUFFER_33)
    int32_t cores = 1;
    CubeMemories memories;
};

// What one copy from global memory to L1 brings of an operand, in base blocks, and how many such copies L1 holds.
struct OperandLoads {
    int32_t along_k = 1;
    int32_t across = 1;         // rows of the left operand, columns of the right one
    int32_t buffers = 2;

    int32_t blocks() const { return along_k * across * buffers; }
};

struct L1Loads {
    OperandLoads a, b;
    int64_t bytes = 0;
};

struct MatmulPlan {
    Extents shape;
    int32_t cores = 1;
    Extents single;
    Extents base;
    L1Loads loads;
    bool n_first = false;
    int32_t l0_buffers = 2;
    int32_t l0c_buffers = 1;
    int64_t l0c_bytes = 0;
};

// The plan with the least estimated time among those that fit the memories; nothing if none fits or an extent is missing.
//
// Base blocks are chosen for the slowest of cube, L1->L0 and global memory transfers, loads into L1 as the published planner
// chooses them (host_tiling_matmul_l1.h). Figures: docs/hardware.md sections 4, 5 and 9 (16 x 16 x 32 bytes multiplied in a
// cycle, 256 and 128 bytes a cycle to L0A and L0B, 84 bytes a cycle and core from global memory).
std::optional<MatmulPlan> plan_matmul(const MatmulProblem &problem);

}  // namespace asim::host
