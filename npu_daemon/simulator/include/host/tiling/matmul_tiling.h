// Planning of matrix multiplications.
//
// Host code of matrix operators builds and describes itself with these declarations. The simulator has no cube
// unit yet, so asking for a plan reports the operator as unsupported.
#pragma once

#include <cstdint>

#include "asim/host/fault.h"
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
    DT_INT4 = ge::DT_INT4
};

struct PlatformInfo {
    platform_ascendc::SocVersion socVersion = platform_ascendc::SocVersion::RESERVED_VERSION;
    uint64_t l1Size = 0;
    uint64_t l0CSize = 0;
    uint64_t ubSize = 0;
    uint64_t l0ASize = 0;
    uint64_t l0BSize = 0;
};

class MatmulApiTilingBase {
 public:
    MatmulApiTilingBase() = default;
    explicit MatmulApiTilingBase(const platform_ascendc::PlatformAscendC &) {}
    explicit MatmulApiTilingBase(const PlatformInfo &) {}

    int32_t SetAType(TPosition, CubeFormat, DataType, bool = false) { return 0; }
    int32_t SetBType(TPosition, CubeFormat, DataType, bool = false) { return 0; }
    int32_t SetCType(TPosition, CubeFormat, DataType) { return 0; }
    int32_t SetBiasType(TPosition, CubeFormat, DataType) { return 0; }
    int32_t SetShape(int32_t, int32_t, int32_t) { return 0; }
    int32_t SetOrgShape(int32_t, int32_t, int32_t) { return 0; }
    int32_t SetOrgShape(int32_t, int32_t, int32_t, int32_t) { return 0; }
    int32_t SetSingleShape(int32_t = -1, int32_t = -1, int32_t = -1) { return 0; }
    int32_t SetSingleRange(int32_t = -1, int32_t = -1, int32_t = -1, int32_t = -1, int32_t = -1, int32_t = -1) {
        return 0;
    }
    int32_t SetSplitRange(int32_t = -1, int32_t = -1, int32_t = -1, int32_t = -1, int32_t = -1, int32_t = -1) {
        return 0;
    }
    int32_t SetFixSplit(int32_t = -1, int32_t = -1, int32_t = -1) { return 0; }
    int32_t SetAlignSplit(int32_t = -1, int32_t = -1, int32_t = -1) { return 0; }
    int32_t SetBufferSpace(int32_t = -1, int32_t = -1, int32_t = -1, int32_t = -1) { return 0; }
    int32_t SetTraverse(MatrixTraverse) { return 0; }
    int32_t SetMadType(MatrixMadType) { return 0; }
    int32_t SetBias(bool = false) { return 0; }
    int32_t EnableBias(bool = false) { return 0; }
    int32_t SetDim(int32_t) { return 0; }
    void SetMatmulConfigParams(int32_t = 1, bool = false, ScheduleType = ScheduleType::INNER_PRODUCT,
                               MatrixTraverse = MatrixTraverse::NOSET, bool = false) {}

    int64_t GetTiling(optiling::TCubeTiling &) { throw asim::host::UnsupportedFault(kReason); }
    int32_t GetBaseM() const { throw asim::host::UnsupportedFault(kReason); }
    int32_t GetBaseN() const { throw asim::host::UnsupportedFault(kReason); }
    int32_t GetBaseK() const { throw asim::host::UnsupportedFault(kReason); }
    int32_t GetCoreNum(int32_t &, int32_t &, int32_t &) { throw asim::host::UnsupportedFault(kReason); }

 private:
    static constexpr const char *kReason = "planning a matrix multiplication: the simulator has no cube unit";
};

class MatmulApiTiling : public MatmulApiTilingBase {
 public:
    using MatmulApiTilingBase::MatmulApiTilingBase;
};

class MultiCoreMatmulTiling : public MatmulApiTilingBase {
 public:
    using MatmulApiTilingBase::MatmulApiTilingBase;
};

}  // namespace matmul_tiling
