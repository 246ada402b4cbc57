// What a kernel says about a multiplication, checked against the chip: sizes that it has no memory for are none.
#include <algorithm>

#include "asim/check/check.h"
#include "asim/machine/block.h"
#include "asim/machine/fault.h"
#include "asim/machine/scheduler.h"
#include "asim/semantics/matmul_state.h"
#include "matmul_trace.h"
#include "matrix_copies.h"

namespace asim {

namespace {

constexpr uint64_t kMostElements = 1ull << 40;  // of a matrix: more than any memory holds
constexpr uint64_t kMostExtent = 1ull << 31;
constexpr uint32_t kMostBuffers = 1024;         // of a plan, in steps, depths and buffers
constexpr uint32_t kMostBlocks = 1u << 30;

bool exists(const StoredMatrix &matrix) {
    return static_cast<uint32_t>(matrix.space) < kSpaceCount && matrix.type <= NumberType::I4 && matrix.layout <= MatrixLayout::Fractals;
}

// Elements of 32 bytes; results of 32 bits are not split: 16 of them.
uint8_t fractal_columns(NumberType type, bool result) {
    const uint32_t columns = 8 * kFractalRowBytes / type_bits(type);
    return static_cast<uint8_t>(result ? std::max(columns, kFractalRows) : columns);
}

void check_extents(const char *call, const MatmulProblem &problem) {
    const uint64_t pairs[][2] = {{problem.original_m, problem.original_ka}, {problem.original_kb, problem.original_n},
                                 {problem.original_m, std::max(problem.original_n, problem.original_kc)},
                                 {problem.single.m, problem.single.k}, {problem.single.k, problem.single.n}, {problem.single.m, problem.single.n}};
    for (const auto &[rows, columns] : pairs) {
        if (rows <= kMostExtent && columns <= kMostExtent && rows * columns <= kMostElements) continue;
        fault(FaultKind::RuntimeFault, call, "a matrix of %lld x %lld elements: Init, SetOrgShape and SetSingleShape take extents of matrices",
              static_cast<long long>(rows), static_cast<long long>(columns));
    }
}

// Buffers of base blocks in a memory of the cube core.
void check_room(const char *call, Space space, const char *name, const char *field, uint64_t bytes, uint32_t buffers) {
    const uint64_t room = launch_shape().memory_bytes[static_cast<uint32_t>(space)];
    if (room == 0 || bytes * buffers <= room) return;
    fault(FaultKind::RuntimeFault, call, "the plan keeps %u base blocks of %llu bytes in %s (%s), which has %llu: use smaller base blocks", buffers,
          static_cast<unsigned long long>(bytes), name, field, static_cast<unsigned long long>(room));
}

void check_plan(const char *call, const MatmulProblem &problem) {
    const MatmulBlocks &blocks = problem.blocks;
    const GemmExtents &base = blocks.base;
    const uint32_t counts[] = {blocks.step_m, blocks.step_n, blocks.step_ka, blocks.step_kb, blocks.depth_a1,
                               blocks.depth_b1, blocks.l0a_buffers, blocks.l0b_buffers, blocks.l0c_buffers};
    const bool possible = std::all_of(std::begin(counts), std::end(counts), [](uint32_t count) { return count >= 1 && count <= kMostBuffers; });
    if (!possible || base.m == 0 || base.n == 0 || base.k == 0 || std::max({base.m, base.n, base.k}) > UINT16_MAX) {
        fault(FaultKind::RuntimeFault, call, "a plan of base blocks of %u x %u x %u: expected extents of at least 1, and 1 to %u steps, depths and buffers",
              base.m, base.n, base.k, kMostBuffers);
    }
    check_room(call, Space::L0A, "L0A", "baseM, baseK, dbL0A", fractal_bytes(problem.a.type, base.m, base.k), blocks.l0a_buffers);
    check_room(call, Space::L0B, "L0B", "baseN, baseK, dbL0B", fractal_bytes(problem.b.type, base.n, base.k), blocks.l0b_buffers);
    const uint64_t result = uint64_t{align_up(base.m, kFractalRows)} * align_up(base.n, kFractalRows) * sizeof(float);
    check_room(call, Space::L0C, "L0C", "baseM, baseN, dbL0C", result, blocks.l0c_buffers);
    if (uint64_t{ceil_div(problem.single.m, base.m)} * ceil_div(problem.single.n, base.n) > kMostBlocks) {
        fault(FaultKind::RuntimeFault, call, "%u x %u results in base blocks of %u x %u are too many", problem.single.m, problem.single.n, base.m, base.n);
    }
}

// Cubes multiply numbers of one type. What a base block takes follows from that of the left operand.
void check_types(const char *call, const MatmulProblem &problem) {
    const NumberType type = problem.a.type;
    if (type == problem.b.type && type != NumberType::I32) return;
    fault(FaultKind::RuntimeFault, call, "its operands have element types number %u and %u: expected one type for both, of at most 32 bits of a float or "
          "8 bits of an integer", static_cast<unsigned>(type), static_cast<unsigned>(problem.b.type));
}

bool same(const GemmExtents &a, const GemmExtents &b) { return a.m == b.m && a.n == b.n && a.k == b.k; }

bool same_place(const StoredMatrix &a, const StoredMatrix &b) {
    return a.base == b.base && a.space == b.space && a.type == b.type && a.layout == b.layout && a.transposed == b.transposed;
}

bool same_steps(const MatmulBlocks &a, const MatmulBlocks &b) {
    return same(a.base, b.base) && a.step_m == b.step_m && a.step_n == b.step_n && a.step_ka == b.step_ka && a.step_kb == b.step_kb &&
           a.depth_a1 == b.depth_a1 && a.depth_b1 == b.depth_b1;
}

// Whether parts of operands that one problem has brought into L1 are those that the other one needs.
bool shares_l1(const MatmulProblem &a, const MatmulProblem &b) {
    return same_place(a.a, b.a) && same_place(a.b, b.b) && a.original_m == b.original_m && a.original_n == b.original_n &&
           a.original_ka == b.original_ka && a.original_kb == b.original_kb && same(a.single, b.single) && same_steps(a.blocks, b.blocks) &&
           a.one_block_a_copy == b.one_block_a_copy && a.keeps_left == b.keeps_left;
}

// A cube core has global memory and L1 to multiply from and to: it has no unified buffer, and L0 holds what is being multiplied.
bool reached_by_cube(Space space) { return space == Space::Gm || space == Space::L1; }

// A fault if the core that calls has no way to an operand or result there. What does not delegate does nothing on a vector core.
void check_reach(const char *call, const char *operand, Space space, bool delegates) {
    if (on_cube_core() ? reached_by_cube(space) : !delegates || space == Space::Gm || space == Space::Ub) return;
    if (space == Space::L1) {
        fault(FaultKind::Unsupported, call, "%s lies in L1 (TSCM) and the call comes from a vector core: that is simulated on cube cores only", operand);
    }
    fault(FaultKind::RuntimeFault, call, "%s lies in %s: %s", operand, memory_name(space),
          on_cube_core() ? "a cube core multiplies from and to global memory and L1" : "a vector core hands over global memory and its unified buffer");
}

}  // namespace

void check_target(const char *call, const MatmulState &state, const MatmulTarget &target) {
    if (static_cast<uint32_t>(target.space) >= kSpaceCount || target.atomic > AtomicMode::Min) {
        fault(FaultKind::RuntimeFault, call, "a result goes to a memory that exists, in an atomic mode that does");
    }
    if (on_cube_core() && target.space == Space::L0C) fault(FaultKind::Unsupported, call, "a result that stays in L0C (CO1) is not simulated");
    check_reach(call, "the result", target.space, state.delegates);
}

void MatmulState::take(const char *call, const MatmulProblem &problem) {
    if (!exists(problem.a) || !exists(problem.b) || !exists(problem.bias) || !exists(problem.result) || problem.preload > MatmulPreload::Columns) {
        fault(FaultKind::RuntimeFault, call, "the object is damaged: its matrices have no element type, layout or memory that exists");
    }
    check_reach(call, "the left operand", problem.a.space, problem.delegates);
    check_reach(call, "the right operand", problem.b.space, problem.delegates);
    if (problem.has_bias) check_reach(call, "the bias", problem.bias.space, problem.delegates);
    check_types(call, problem);
    check_extents(call, problem);
    check_plan(call, problem);
    if (!shares_l1(*this, problem)) forget_l1();
    static_cast<MatmulProblem &>(*this) = problem;
    a.fractal_columns = fractal_columns(a.type, false);
    b.fractal_columns = fractal_columns(b.type, false);
    bias.fractal_columns = fractal_columns(bias.type, false);
    result.fractal_columns = fractal_columns(result.type, true);
    store.quantisation = quantisation;
    store.relu = relu != 0;
}

}  // namespace asim
