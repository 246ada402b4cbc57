// Planning of matrix multiplications: a problem is described call by call, GetTiling plans it.
//
// The planner is the simulator's own (asim/host/matmul_plan.h): its plans keep the documented constraints of TCubeTiling. Loads
// into L1 are those of the published planner; parts and base blocks that are left to it need not be.
#pragma once

#include <cstdint>
#include <optional>

#include "asim/host/matmul_plan.h"
#include "tiling/library_tiling_data.h"
#include "tiling/platform/platform_ascendc.h"

namespace matmul_tiling {

enum class TPosition : int32_t {
    GM, A1, A2, B1, B2, C1, C2, CO1, CO2, VECIN, VECOUT, VECCALC, LCM = VECCALC, SPM, SHM = SPM, TSCM, MAX
};
enum class CubeFormat { ND = 0, NZ, ZN, ZZ, NN, ND_ALIGN, SCALAR, VECTOR };
enum class MatrixTraverse : int32_t { NOSET = 0, FIRSTM = 1, FIRSTN = 2 };
enum class MatrixMadType : int32_t { NORMAL = 0, HF32 = 1 };
enum class ScheduleType : int32_t { INNER_PRODUCT = 0, OUTER_PRODUCT = 1, N_BUFFER_33 = 2 };
enum class DequantType : int32_t { SCALAR = 0, TENSOR = 1 };

// Element types, numbered as in ge::DataType.
enum class DataType : int32_t {
    DT_FLOAT = ge::DT_FLOAT,
    DT_FLOAT16 = ge::DT_FLOAT16,
    DT_INT8 = ge::DT_INT8,
    DT_INT32 = ge::DT_INT32,
    DT_UINT8 = ge::DT_UINT8,
    DT_INT64 = ge::DT_INT64,
    DT_UINT64 = ge::DT_UINT64,
    DT_BF16 = ge::DT_BF16,
    DT_BFLOAT16 = ge::DT_BF16,
    DT_UNDEFINED = ge::DT_UNDEFINED,
    DT_INT4 = ge::DT_INT4,
    DT_HIFLOAT8 = ge::DT_HIFLOAT8,
    DT_FLOAT8_E5M2 = ge::DT_FLOAT8_E5M2,
    DT_FLOAT8_E4M3FN = ge::DT_FLOAT8_E4M3FN,
    DT_FLOAT8_E8M0 = ge::DT_FLOAT8_E8M0,
    DT_FLOAT4_E2M1 = ge::DT_FLOAT4_E2M1,
    DT_FLOAT4_E1M2 = ge::DT_FLOAT4_E1M2
};

struct PlatformInfo {
    platform_ascendc::SocVersion socVersion = platform_ascendc::SocVersion::RESERVED_VERSION;
    uint64_t l1Size = 0;
    uint64_t l0CSize = 0;
    uint64_t ubSize = 0;
    uint64_t l0ASize = 0;
    uint64_t l0BSize = 0;
};

struct MatmulConfigParams {
    MatmulConfigParams(int32_t type = 1, bool cachesInUb = false, ScheduleType schedule = ScheduleType::INNER_PRODUCT,
                       MatrixTraverse order = MatrixTraverse::NOSET, bool vectorNd2Nz = false)
        : mmConfigType(type), enableL1CacheUB(cachesInUb), scheduleType(schedule), traverse(order), enVecND2NZ(vectorNd2Nz) {}

    int32_t mmConfigType;
    bool enableL1CacheUB;
    ScheduleType scheduleType;
    MatrixTraverse traverse;
    bool enVecND2NZ;
};

// Bytes that a multiplication takes of the memories.
struct SysTilingTempBufSize {
    int32_t ubSize = 0;
    int32_t l1Size = 0;
    int32_t l0cSize = 0;
};

class MatmulApiTilingBase {
 public:
    MatmulApiTilingBase();
    explicit MatmulApiTilingBase(const platform_ascendc::PlatformAscendC &platform);
    explicit MatmulApiTilingBase(const PlatformInfo &platform);
    virtual ~MatmulApiTilingBase() = default;

    // Setters and planners return 0, or -1 where an argument makes no sense or no plan fits.
    int32_t SetAType(TPosition, CubeFormat, DataType type, bool transposed = false) {
        problem_.a_transposed = transposed;
        return set_bytes(problem_.a_bytes, type);
    }
    int32_t SetBType(TPosition, CubeFormat, DataType type, bool transposed = false) {
        problem_.b_transposed = transposed;
        return set_bytes(problem_.b_bytes, type);
    }
    int32_t SetCType(TPosition position, CubeFormat, DataType type);
    int32_t SetBiasType(TPosition, CubeFormat, DataType type) { return set_bytes(problem_.bias_bytes, type); }
    int32_t SetDequantType(DequantType) { return 0; }

    virtual int32_t SetShape(int32_t m, int32_t n, int32_t k);
    int32_t SetOrgShape(int32_t m, int32_t n, int32_t k) { return SetOrgShape(m, n, k, k); }
    int32_t SetOrgShape(int32_t m, int32_t n, int32_t ka, int32_t kb);
    int32_t SetFixSplit(int32_t baseM = -1, int32_t baseN = -1, int32_t baseK = -1);
    int32_t SetSplitRange(int32_t maxM = -1, int32_t maxN = -1, int32_t maxK = -1, int32_t minM = -1, int32_t minN = -1,
                          int32_t minK = -1);
    // -1 stands for the whole memory of the chip; more than that is not to be had.
    int32_t SetBufferSpace(int32_t l1 = -1, int32_t l0c = -1, int32_t ub = -1, int32_t biasTable = -1);
    int32_t SetTraverse(MatrixTraverse traverse);
    int32_t SetMadType(MatrixMadType) { return 0; }
    int32_t SetBias(bool enabled = false);
    int32_t EnableBias(bool enabled = false) { return SetBias(enabled); }
    int32_t SetDoubleBuffer(bool, bool, bool, bool, bool = true, bool = true) { return 0; }
    int32_t SetSparse(bool = false) { return 0; }
    void SetMatmulConfigParams(const MatmulConfigParams &params) { problem_.keeps_left = params.scheduleType == ScheduleType::N_BUFFER_33; }
    void SetMatmulConfigParams(int32_t type = 1, bool cachesInUb = false, ScheduleType schedule = ScheduleType::INNER_PRODUCT,
                               MatrixTraverse order = MatrixTraverse::NOSET, bool vectorNd2Nz = false) {
        SetMatmulConfigParams(MatmulConfigParams(type, cachesInUb, schedule, order, vectorNd2Nz));
    }

    int32_t SetALayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d);
    int32_t SetBLayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d);
    int32_t SetCLayout(int32_t b, int32_t s1, int32_t n, int32_t g, int32_t s2);
    int32_t SetBatchInfoForNormal(int32_t batchA, int32_t batchB, int32_t m, int32_t n, int32_t k);
    int32_t SetBatchNum(int32_t batch);

    int64_t GetTiling(optiling::TCubeTiling &tiling);
    // The same into the structure that kernels read.
    template <class Plain>
    std::enable_if_t<asim::host::is_plain<Plain>, int64_t> GetTiling(Plain &tiling) {
        optiling::TCubeTiling fields;
        const int64_t result = GetTiling(fields);
        if (result != -1) fields.SaveToBuffer(&tiling, sizeof tiling);
        return result;
    }
    int32_t GetBaseM() const { return plan_.base.m; }
    int32_t GetBaseN() const { return plan_.base.n; }
    int32_t GetBaseK() const { return plan_.base.k; }

 protected:
    static int32_t set_bytes(double &bytes, DataType type);

    asim::host::MatmulProblem problem_;
    asim::host::MatmulPlan plan_;

 private:
    void store(optiling::TCubeTiling &tiling) const;

    struct Layout {
        int32_t b = 0, s = 0, n = 0, g = 0, d = 0;
    };

    asim::host::Extents original_;
    int32_t original_kb_ = -1;
    asim::host::CubeMemories whole_;    // of the chip
    Layout a_layout_, b_layout_, c_layout_;
    int32_t batch_a_ = 0;
    int32_t batch_b_ = 0;
    int32_t batches_ = 0;
};

// Plans for one core.
class MatmulApiTiling : public MatmulApiTilingBase {
 public:
    using MatmulApiTilingBase::MatmulApiTilingBase;
};

// Cuts the problem over cores, then plans for each.
class MultiCoreMatmulTiling : public MatmulApiTilingBase {
 public:
    using MatmulApiTilingBase::MatmulApiTilingBase;

    int32_t SetDim(int32_t cores);
    int32_t SetSingleShape(int32_t m = -1, int32_t n = -1, int32_t k = -1);
    int32_t SetSingleRange(int32_t maxM = -1, int32_t maxN = -1, int32_t maxK = -1, int32_t minM = -1, int32_t minN = -1,
                           int32_t minK = -1);
    int32_t SetAlignSplit(int32_t m = -1, int32_t n = -1, int32_t k = -1);
    void EnableMultiCoreSplitK(bool enabled) { problem_.may_split_k = enabled; }
    void SetSplitK(bool enabled) { EnableMultiCoreSplitK(enabled); }
    int32_t GetSingleShape(int32_t &m, int32_t &n, int32_t &k) const;
    // Cores used, and how many parts there are along m and n.
    int32_t GetCoreNum(int32_t &cores, int32_t &mParts, int32_t &nParts) const;
};

}  // namespace matmul_tiling

int32_t MatmulGetTmpBufSize(optiling::TCubeTiling &tiling, matmul_tiling::SysTilingTempBufSize &sizes);
int32_t MultiCoreMatmulGetTmpBufSize(optiling::TCubeTiling &tiling, matmul_tiling::SysTilingTempBufSize &sizes);
