// Plans one multiplication from Python: problem in, the fields of TCubeTiling that hold the plan out.
#include "tiling/tiling_api.h"

using matmul_tiling::CubeFormat;
using matmul_tiling::DataType;
using matmul_tiling::MultiCoreMatmulTiling;
using matmul_tiling::TPosition;

struct Problem {
    int32_t m, n, k, cores, a_type, c_type, has_bias, base_m, base_n, single_m, single_n, split_k, order, l1_bytes, keeps_left;
};

struct Plan {
    int32_t cores, m, n, ka, kb, single_m, single_n, single_k, base_m, base_n, base_k, step_m, step_n, step_ka, step_kb, depth_a1,
        depth_b1, db_l0a, db_l0b, db_l0c, order, is_bias, m_parts, n_parts;
};

extern "C" int64_t plan_matmul(const Problem *problem, Plan *plan) {
    matmul_tiling::PlatformInfo chip;
    chip.l1Size = 512 * 1024 - 256;
    chip.l0ASize = chip.l0BSize = 64 * 1024;
    chip.l0CSize = 128 * 1024;
    chip.ubSize = 192 * 1024 - 256;
    MultiCoreMatmulTiling planner(chip);
    const auto type = static_cast<DataType>(problem->a_type);
    planner.SetDim(problem->cores);
    planner.SetAType(TPosition::GM, CubeFormat::ND, type);
    planner.SetBType(TPosition::GM, CubeFormat::ND, type, true);
    planner.SetCType(TPosition::GM, CubeFormat::ND, static_cast<DataType>(problem->c_type));
    planner.SetBiasType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT);
    planner.SetShape(problem->m, -1, problem->k);
    planner.SetOrgShape(problem->m, problem->n, problem->k);
    planner.SetSingleShape(problem->single_m, problem->single_n, -1);
    planner.SetFixSplit(problem->base_m, problem->base_n, -1);
    planner.SetBias(problem->has_bias != 0);
    planner.SetBufferSpace(problem->l1_bytes, -1, -1);
    planner.EnableMultiCoreSplitK(problem->split_k != 0);
    planner.SetTraverse(static_cast<matmul_tiling::MatrixTraverse>(problem->order));
    if (problem->keeps_left) planner.SetMatmulConfigParams(1, false, matmul_tiling::ScheduleType::N_BUFFER_33);
    optiling::TCubeTiling tiling;
    if (planner.GetTiling(tiling) == -1) return -1;
    int32_t used = 0, m_parts = 0, n_parts = 0;
    planner.GetCoreNum(used, m_parts, n_parts);
    *plan = {tiling.get_usedCoreNum(), tiling.get_M(), tiling.get_N(), tiling.get_Ka(), tiling.get_Kb(),
             tiling.get_singleCoreM(), tiling.get_singleCoreN(), tiling.get_singleCoreK(), tiling.get_baseM(),
             tiling.get_baseN(), tiling.get_baseK(), tiling.get_stepM(), tiling.get_stepN(), tiling.get_stepKa(),
             tiling.get_stepKb(), tiling.get_depthA1(), tiling.get_depthB1(), tiling.get_dbL0A(), tiling.get_dbL0B(),
             tiling.get_dbL0C(), tiling.get_iterateOrder(), tiling.get_isBias(), m_parts, n_parts};
    return 0;
}
