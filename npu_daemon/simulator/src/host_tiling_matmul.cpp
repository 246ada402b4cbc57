// Plans matrix multiplications: the search behind MatmulApiTiling and MultiCoreMatmulTiling.
#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <vector>

#include "asim/host/matmul_plan.h"
#include "host_tiling_matmul_l1.h"

namespace asim::host {
namespace {

constexpr double kL0aBytesPerCycle = 256;
constexpr double kL0bBytesPerCycle = 128;
constexpr double kGmBytesPerCycle = 84;
constexpr int32_t kLargeRows = 128, kLargeColumns = 256;       // of a block of a large product
constexpr std::array<int32_t, 11> kBaseExtents = {512, 384, 320, 256, 192, 128, 96, 64, 48, 32, 16};

int32_t align_up(int64_t value, int64_t unit) { return static_cast<int32_t>(ceil_div(value, unit) * unit); }

// Elements of 32 bytes along k; blocks are multiples of this, and of a fractal.
int32_t k_unit(const MatmulProblem &problem) {
    const double widest = std::min(problem.a_bytes, problem.b_bytes);
    return std::max(kFractal, static_cast<int32_t>(kBlockBytes / widest));
}

// ---- parts of the cores ----

// Extent of one core when `extent` is cut into `parts`; `unit` keeps all parts but the last whole blocks.
int32_t part_of(int32_t extent, int32_t parts, int32_t unit, int32_t given, int32_t least, int32_t most) {
    if (given > 0) return given;
    int32_t part = align_up(ceil_div(extent, parts), unit);
    if (most > 0) part = std::min(part, most);
    if (least > 0) part = std::max(part, least);
    return std::min(part, extent);
}

int32_t single_unit(int32_t aligned, int32_t base) { return aligned > 0 ? aligned : base > 0 ? base : kFractal; }

struct Split {
    Extents single;
    int32_t cores;
};

Split split_into(const MatmulProblem &problem, const Extents &parts) {
    const Extents &shape = problem.shape, &given = problem.single, &least = problem.least_single, &most = problem.most_single;
    const Extents &aligned = problem.aligned_single, &base = problem.base;
    Split split;
    split.single.m = part_of(shape.m, parts.m, single_unit(aligned.m, base.m), given.m, least.m, most.m);
    split.single.n = part_of(shape.n, parts.n, single_unit(aligned.n, base.n), given.n, least.n, most.n);
    split.single.k = part_of(shape.k, parts.k, std::max(k_unit(problem), aligned.k), given.k, least.k, most.k);
    const int64_t needed = int64_t{ceil_div(shape.m, split.single.m)} * ceil_div(shape.n, split.single.n) *
                           (problem.may_split_k ? ceil_div(shape.k, split.single.k) : 1);
    split.cores = static_cast<int32_t>(std::min<int64_t>(needed, problem.cores));
    return split;
}

// Kernels that sum over cores have no code for a shorter last part, and a part must be worth its sums: the published plan for
// 16 x 16 x 1024 half has two parts (asc-devkit, matmul_splitk).
bool splits_k_evenly(const MatmulProblem &problem, int32_t parts) {
    constexpr int32_t kLeastBlocks = 32;
    if (parts == 1 || problem.single.k > 0) return true;
    const int32_t blocks = ceil_div(problem.shape.k, k_unit(problem));
    return blocks % parts == 0 && blocks / parts >= kLeastBlocks;
}

// Whether the published planner takes the product for a large one: each core has most of a block of 128 x 256, and the
// kernel leaves it the parts (asc-devkit, matmul_tiling_algorithm.cpp: GetMultiCoreScenario).
bool is_large(const MatmulProblem &problem) {
    constexpr int64_t kMostOfBlock = 26214;
    const bool free = problem.cores > 1 && !problem.may_split_k && problem.single.m <= 0 && problem.single.n <= 0;
    return free && problem.shape.m >= 128 && int64_t{problem.shape.m} * problem.shape.n > kMostOfBlock * problem.cores;
}

using SplitCost = std::tuple<double, double, int32_t, int32_t>;

// Least work of the busiest core, then least data for it, then fewest cores, then parts of rows rather than of columns (the
// published plan for 512 x 512 x 128 on two cores: asc-devkit, matmul_advanced_api). For large products, as published, blocks
// count instead of data, and then the rows and columns that no two cores share (CalcBaseBlockBandRatio).
SplitCost cost_of(const Split &split, int32_t m_parts, int32_t n_parts, bool large) {
    const Extents &single = split.single;
    const double rows = align_up(single.m, kFractal), columns = align_up(single.n, kFractal);
    const double work = rows * columns * single.k;
    if (!large) return {work, (rows + columns) * single.k, split.cores, single.m};
    const double blocks = std::ceil(rows / kLargeRows) * std::ceil(columns / kLargeColumns);
    return {work, blocks, m_parts * kLargeRows + n_parts * kLargeColumns, single.m};
}

Split split_cores(const MatmulProblem &problem) {
    const bool large = is_large(problem);
    Split best{};
    SplitCost best_cost;
    for (int32_t m = 1; m <= problem.cores; ++m) {
        for (int32_t n = 1; n <= problem.cores / m; ++n) {
            for (int32_t k = 1; k <= (problem.may_split_k ? problem.cores / (m * n) : 1); ++k) {
                if (!splits_k_evenly(problem, k)) continue;
                const Split split = split_into(problem, {m, n, k});
                const SplitCost cost = cost_of(split, m, n, large);
                if (best.cores == 0 || cost < best_cost) best = split, best_cost = cost;
            }
        }
    }
    return best;
}

// ---- block of one instruction ----

int32_t longest_base_k(const MatmulProblem &problem, int32_t m, int32_t n, int32_t k, int32_t buffers) {
    const int32_t unit = k_unit(problem);
    const double room = std::min(problem.memories.l0a / (m * problem.a_bytes), problem.memories.l0b / (n * problem.b_bytes));
    int32_t longest = static_cast<int32_t>(room / buffers) / unit * unit;
    const int32_t whole_rows = static_cast<int32_t>(128 / problem.a_bytes);  // short rows from global memory are slow
    if (longest > whole_rows) longest = longest / whole_rows * whole_rows;
    if (problem.most_base.k > 0) longest = std::min(longest, problem.most_base.k / unit * unit);
    return std::min(longest, align_up(k, unit));
}

bool base_fits(const MatmulProblem &problem, int32_t m, int32_t n) {
    const CubeMemories &memories = problem.memories;
    const int64_t elements = int64_t{m} * n;
    if (elements * 4 > memories.l0c) return false;
    if (problem.has_bias && n * 4 > memories.bias_table) return false;
    return !problem.result_in_ub || elements * problem.c_bytes <= memories.ub;
}

double base_cycles(const MatmulProblem &problem, const Extents &single, int32_t m, int32_t n) {
    const double blocks = static_cast<double>(ceil_div(single.m, m)) * ceil_div(single.n, n) * single.k;
    const double cube = (m / 16.0) * (n / 16.0) * std::max(problem.a_bytes, problem.b_bytes) / kBlockBytes;
    const double l0 = m * problem.a_bytes / kL0aBytesPerCycle + n * problem.b_bytes / kL0bBytesPerCycle;
    const double gm = (m * problem.a_bytes + n * problem.b_bytes) / kGmBytesPerCycle;
    return blocks * std::max({cube, l0, gm});
}

std::vector<int32_t> base_candidates(int32_t given, int32_t single, int32_t unit, int32_t least, int32_t most) {
    if (given > 0) return {given};
    const int32_t whole = align_up(single, unit);
    std::vector<int32_t> candidates;
    if (whole < kBaseExtents.front()) candidates.push_back(whole);
    for (const int32_t extent : kBaseExtents) {
        if (extent < whole && extent % unit == 0) candidates.push_back(extent);
    }
    const auto out_of_range = [&](int32_t extent) { return (least > 0 && extent < least) || (most > 0 && extent > most); };
    candidates.erase(std::remove_if(candidates.begin(), candidates.end(), out_of_range), candidates.end());
    return candidates;
}

// Extents of m = 0 when no block fits.
Extents choose_base(const MatmulProblem &problem, const Extents &single, int32_t buffers) {
    const int32_t unit = std::max(kFractal, static_cast<int32_t>(kBlockBytes / problem.b_bytes));
    Extents best{0, 0, 0};
    double best_cycles = 0;
    for (const int32_t n : base_candidates(problem.base.n, single.n, unit, problem.least_base.n, problem.most_base.n)) {
        for (const int32_t m : base_candidates(problem.base.m, single.m, kFractal, problem.least_base.m, problem.most_base.m)) {
            const int32_t k = problem.base.k > 0 ? problem.base.k : longest_base_k(problem, m, n, single.k, buffers);
            if (k <= 0 || !base_fits(problem, m, n)) continue;
            const double cycles = base_cycles(problem, single, m, n);
            if (best.m == 0 || cycles < best_cycles) best = {m, n, k}, best_cycles = cycles;
        }
    }
    return best;
}

// Parts of at most three blocks of rows, of whole blocks of columns, and of all of k; blocks as for one core alone.
MatmulProblem with_rows_kept(MatmulProblem problem) {
    constexpr int32_t kMostBlocks = 3;
    const Extents shape = problem.shape;
    problem.keeps_left = false;
    problem.base = choose_base(problem, shape, 2);
    if (problem.base.m == 0) return problem;
    problem.single.m = std::min(shape.m, kMostBlocks * problem.base.m);
    const int32_t most_columns = std::max(1, problem.cores / ceil_div(shape.m, problem.single.m));
    const int32_t columns = std::clamp(shape.n / problem.base.n, 1, most_columns);
    problem.single.n = std::min(shape.n, align_up(ceil_div(shape.n, columns), problem.base.n));
    problem.single.k = shape.k;
    return problem;
}

}  // namespace

std::optional<MatmulPlan> plan_matmul(const MatmulProblem &problem) {
    const Extents &shape = problem.shape;
    if (problem.keeps_left) return plan_matmul(with_rows_kept(problem));
    if (shape.m <= 0 || shape.n <= 0 || shape.k <= 0 || problem.cores <= 0) return std::nullopt;
    MatmulPlan plan;
    const Split split = split_cores(problem);
    plan.shape = shape;
    plan.cores = split.cores;
    plan.single = split.single;
    for (plan.l0_buffers = 2; plan.l0_buffers >= 1; --plan.l0_buffers) {
        plan.base = choose_base(problem, plan.single, plan.l0_buffers);
        if (plan.base.m > 0) break;
    }
    if (plan.base.m == 0) return std::nullopt;
    const int64_t block_bytes = int64_t{plan.base.m} * plan.base.n * 4;
    plan.l0c_buffers = 2 * block_bytes <= problem.memories.l0c ? 2 : 1;
    plan.l0c_bytes = block_bytes * plan.l0c_buffers;
    const bool large = is_large(problem);
    const std::optional<L1Loads> loads = plan_l1(problem, plan, large);
    if (!loads) return std::nullopt;
    plan.loads = *loads;
    plan.n_first = problem.n_first.value_or(!large && saves_more_columns_first(plan));
    return plan;
}

}  // namespace asim::host
