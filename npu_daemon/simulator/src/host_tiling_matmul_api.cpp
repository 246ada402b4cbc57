// MatmulApiTiling and MultiCoreMatmulTiling: collect a problem, plan it, and fill in a TCubeTiling.
#include <algorithm>

#include "tiling/matmul_tiling.h"

using asim::host::CubeMemories;
using asim::host::Extents;
using asim::host::MatmulPlan;
using platform_ascendc::CoreMemType;
using platform_ascendc::PlatformAscendC;

namespace matmul_tiling {
namespace {

constexpr int64_t kBiasTableBytes = 1024;   // docs/hardware.md section 1
constexpr int64_t kDone = 0;
constexpr int64_t kFailed = -1;

int64_t bytes_of(const PlatformAscendC &platform, CoreMemType type) {
    uint64_t bytes = 0;
    platform.GetCoreMemSize(type, bytes);
    return static_cast<int64_t>(bytes);
}

CubeMemories memories_of(const PlatformAscendC &platform) {
    CubeMemories memories;
    memories.l1 = bytes_of(platform, CoreMemType::L1);
    memories.l0a = bytes_of(platform, CoreMemType::L0_A);
    memories.l0b = bytes_of(platform, CoreMemType::L0_B);
    memories.l0c = bytes_of(platform, CoreMemType::L0_C);
    memories.ub = bytes_of(platform, CoreMemType::UB);
    memories.bias_table = kBiasTableBytes;
    return memories;
}

int32_t set_extents(Extents &extents, int32_t m, int32_t n, int32_t k) {
    extents = {m, n, k};
    return kDone;
}

int32_t parts(int32_t extent, int32_t part) { return part <= 0 ? 1 : (extent + part - 1) / part; }

}  // namespace

MatmulApiTilingBase::MatmulApiTilingBase()
    : MatmulApiTilingBase(*platform_ascendc::PlatformAscendCManager::GetInstance()) {}

MatmulApiTilingBase::MatmulApiTilingBase(const PlatformAscendC &platform) : whole_(memories_of(platform)) {
    problem_.memories = whole_;
}

MatmulApiTilingBase::MatmulApiTilingBase(const PlatformInfo &platform) {
    whole_.l1 = static_cast<int64_t>(platform.l1Size);
    whole_.l0a = static_cast<int64_t>(platform.l0ASize);
    whole_.l0b = static_cast<int64_t>(platform.l0BSize);
    whole_.l0c = static_cast<int64_t>(platform.l0CSize);
    whole_.ub = static_cast<int64_t>(platform.ubSize);
    whole_.bias_table = kBiasTableBytes;
    problem_.memories = whole_;
}

int32_t MatmulApiTilingBase::set_bytes(double &bytes, DataType type) {
    switch (type) {
        case DataType::DT_INT4: bytes = 0.5; return kDone;
        case DataType::DT_INT8:
        case DataType::DT_UINT8: bytes = 1; return kDone;
        case DataType::DT_FLOAT16:
        case DataType::DT_BF16: bytes = 2; return kDone;
        case DataType::DT_FLOAT:
        case DataType::DT_INT32: bytes = 4; return kDone;
        case DataType::DT_INT64:
        case DataType::DT_UINT64: bytes = 8; return kDone;
        default: return kFailed;
    }
}

int32_t MatmulApiTilingBase::SetCType(TPosition position, CubeFormat, DataType type) {
    problem_.result_in_ub = position == TPosition::VECIN || position == TPosition::VECCALC || position == TPosition::VECOUT;
    return set_bytes(problem_.c_bytes, type);
}

int32_t MatmulApiTilingBase::SetShape(int32_t m, int32_t n, int32_t k) { return set_extents(problem_.shape, m, n, k); }

int32_t MatmulApiTilingBase::SetOrgShape(int32_t m, int32_t n, int32_t ka, int32_t kb) {
    original_kb_ = kb;
    return set_extents(original_, m, n, ka);
}

int32_t MatmulApiTilingBase::SetFixSplit(int32_t m, int32_t n, int32_t k) { return set_extents(problem_.base, m, n, k); }

int32_t MatmulApiTilingBase::SetSplitRange(int32_t maxM, int32_t maxN, int32_t maxK, int32_t minM, int32_t minN, int32_t minK) {
    set_extents(problem_.most_base, maxM, maxN, maxK);
    return set_extents(problem_.least_base, minM, minN, minK);
}

int32_t MatmulApiTilingBase::SetBufferSpace(int32_t l1, int32_t l0c, int32_t ub, int32_t biasTable) {
    const auto chosen = [](int32_t wanted, int64_t whole) { return wanted < 0 ? whole : std::min<int64_t>(wanted, whole); };
    problem_.memories.l1 = chosen(l1, whole_.l1);
    problem_.memories.l0c = chosen(l0c, whole_.l0c);
    problem_.memories.ub = chosen(ub, whole_.ub);
    problem_.memories.bias_table = chosen(biasTable, whole_.bias_table);
    return kDone;
}

int32_t MatmulApiTilingBase::SetTraverse(MatrixTraverse traverse) {
    problem_.n_first.reset();
    if (traverse != MatrixTraverse::NOSET) problem_.n_first = traverse == MatrixTraverse::FIRSTN;
    return kDone;
}

int32_t MatmulApiTilingBase::SetBias(bool enabled) {
    problem_.has_bias = enabled;
    return kDone;
}

int32_t MatmulApiTilingBase::SetALayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d) {
    a_layout_ = {b, s, n, g, d};
    return kDone;
}

int32_t MatmulApiTilingBase::SetBLayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d) {
    b_layout_ = {b, s, n, g, d};
    return kDone;
}

int32_t MatmulApiTilingBase::SetCLayout(int32_t b, int32_t s1, int32_t n, int32_t g, int32_t s2) {
    c_layout_ = {b, s1, n, g, s2};
    return kDone;
}

int32_t MatmulApiTilingBase::SetBatchInfoForNormal(int32_t batchA, int32_t batchB, int32_t m, int32_t n, int32_t k) {
    batch_a_ = batchA;
    batch_b_ = batchB;
    return set_extents(problem_.shape, m, n, k);
}

int32_t MatmulApiTilingBase::SetBatchNum(int32_t batch) {
    batches_ = batch;
    return batch > 0 ? kDone : kFailed;
}

int64_t MatmulApiTilingBase::GetTiling(optiling::TCubeTiling &tiling) {
    asim::host::MatmulProblem problem = problem_;
    if (problem.shape.m < 0) problem.shape.m = original_.m;
    if (problem.shape.n < 0) problem.shape.n = original_.n;
    if (problem.shape.k < 0) problem.shape.k = original_.k;
    const std::optional<MatmulPlan> plan = asim::host::plan_matmul(problem);
    if (!plan) return kFailed;
    plan_ = *plan;
    store(tiling);
    return kDone;
}

void MatmulApiTilingBase::store(optiling::TCubeTiling &tiling) const {
    tiling.set_usedCoreNum(plan_.cores);
    tiling.set_M(original_.m > 0 ? original_.m : plan_.shape.m);
    tiling.set_N(original_.n > 0 ? original_.n : plan_.shape.n);
    tiling.set_Ka(original_.k > 0 ? original_.k : plan_.shape.k);
    tiling.set_Kb(original_kb_ > 0 ? original_kb_ : plan_.shape.k);
    tiling.set_singleCoreM(plan_.single.m);
    tiling.set_singleCoreN(plan_.single.n);
    tiling.set_singleCoreK(plan_.single.k);
    tiling.set_isBias(problem_.has_bias ? 1 : 0);
    tiling.set_baseM(plan_.base.m);
    tiling.set_baseN(plan_.base.n);
    tiling.set_baseK(plan_.base.k);
    tiling.set_iterateOrder(plan_.n_first ? 1 : 0);
    tiling.set_stepM(plan_.loads.a.across);
    tiling.set_stepN(plan_.loads.b.across);
    tiling.set_stepKa(plan_.loads.a.along_k);
    tiling.set_stepKb(plan_.loads.b.along_k);
    tiling.set_depthA1(plan_.loads.a.blocks());
    tiling.set_depthB1(plan_.loads.b.blocks());
    tiling.set_dbL0A(plan_.l0_buffers);
    tiling.set_dbL0B(plan_.l0_buffers);
    tiling.set_dbL0C(plan_.l0c_buffers);
    tiling.set_shareL1Size(static_cast<int32_t>(plan_.loads.bytes));
    tiling.set_shareL0CSize(static_cast<int32_t>(plan_.l0c_bytes));
    tiling.set_batchM(std::max(batch_a_, 1));
    tiling.set_batchN(std::max(batch_b_, 1));
    tiling.set_singleBatchM(std::max(batch_a_, 1));
    tiling.set_singleBatchN(std::max(batch_b_, 1));
    tiling.set_ALayoutInfoB(a_layout_.b), tiling.set_ALayoutInfoS(a_layout_.s), tiling.set_ALayoutInfoN(a_layout_.n);
    tiling.set_ALayoutInfoG(a_layout_.g), tiling.set_ALayoutInfoD(a_layout_.d);
    tiling.set_BLayoutInfoB(b_layout_.b), tiling.set_BLayoutInfoS(b_layout_.s), tiling.set_BLayoutInfoN(b_layout_.n);
    tiling.set_BLayoutInfoG(b_layout_.g), tiling.set_BLayoutInfoD(b_layout_.d);
    tiling.set_CLayoutInfoB(c_layout_.b), tiling.set_CLayoutInfoS1(c_layout_.s), tiling.set_CLayoutInfoN(c_layout_.n);
    tiling.set_CLayoutInfoG(c_layout_.g), tiling.set_CLayoutInfoS2(c_layout_.d);
    tiling.set_BatchNum(batches_);
}

int32_t MultiCoreMatmulTiling::SetDim(int32_t cores) {
    if (cores <= 0) return kFailed;
    problem_.cores = cores;
    return kDone;
}

int32_t MultiCoreMatmulTiling::SetSingleShape(int32_t m, int32_t n, int32_t k) {
    return set_extents(problem_.single, m, n, k);
}

int32_t MultiCoreMatmulTiling::SetSingleRange(int32_t maxM, int32_t maxN, int32_t maxK, int32_t minM, int32_t minN,
                                              int32_t minK) {
    set_extents(problem_.most_single, maxM, maxN, maxK);
    return set_extents(problem_.least_single, minM, minN, minK);
}

int32_t MultiCoreMatmulTiling::SetAlignSplit(int32_t m, int32_t n, int32_t k) {
    return set_extents(problem_.aligned_single, m, n, k);
}

int32_t MultiCoreMatmulTiling::GetSingleShape(int32_t &m, int32_t &n, int32_t &k) const {
    m = plan_.single.m, n = plan_.single.n, k = plan_.single.k;
    return m > 0 ? kDone : kFailed;
}

int32_t MultiCoreMatmulTiling::GetCoreNum(int32_t &cores, int32_t &mParts, int32_t &nParts) const {
    cores = plan_.cores;
    mParts = parts(plan_.shape.m, plan_.single.m);
    nParts = parts(plan_.shape.n, plan_.single.n);
    return plan_.single.m > 0 ? kDone : kFailed;
}

}  // namespace matmul_tiling

// Only results and operands in UB need scratch of their own, and ours need none.
int32_t MatmulGetTmpBufSize(optiling::TCubeTiling &tiling, matmul_tiling::SysTilingTempBufSize &sizes) {
    sizes.ubSize = 0;
    sizes.l1Size = tiling.get_shareL1Size();
    sizes.l0cSize = tiling.get_shareL0CSize();
    return 0;
}

int32_t MultiCoreMatmulGetTmpBufSize(optiling::TCubeTiling &tiling, matmul_tiling::SysTilingTempBufSize &sizes) {
    return MatmulGetTmpBufSize(tiling, sizes);
}
