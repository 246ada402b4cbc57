// What a core's copies from global memory to L1 bring: the part of a plan that the published planner settles.
#pragma once
#include <cstdint>
#include <optional>

#include "asim/host/matmul_plan.h"

namespace asim::host {

constexpr int32_t kFractal = 16;            // rows and columns of a block that the cube works on
constexpr double kBlockBytes = 32;          // and its bytes along k

inline int32_t ceil_div(int64_t value, int64_t unit) { return static_cast<int32_t>((value + unit - 1) / unit); }

// Loads for a plan whose parts and base blocks are known; nothing if not even one block of each operand fits.
//
// Follows the published planner (asc-devkit, impl/adv_api/tiling/matmul/matmul_tiling_algorithm.cpp). `large` products, whose
// parts the kernel leaves to it, get half of L1 for each operand (CalcL1Tiling). All others get the best of four (GetL1Factors),
// which copies the fewest rows and columns: both operands stay in L1, one of them does, or none.
std::optional<L1Loads> plan_l1(const MatmulProblem &problem, const MatmulPlan &plan, bool large);

// Which order lets more of L1 be used again where the caller leaves it open (GetIteratorOrder). Kernels of large products that
// place blocks themselves count on rows first (cann-ops, matmul_leakyrelu).
bool saves_more_columns_first(const MatmulPlan &plan);

}  // namespace asim::host
