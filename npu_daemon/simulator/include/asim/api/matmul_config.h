// What a Matmul object is declared with: matrix types and the options of its template.
//
// Names and order of the members are the interface. Of the options, those that change results, order or price are read by
// api/matmul.h; the others choose between ways of the library that are one here.
#pragma once
#define ASIM_READ_FIRST     // an error behind text of kernels, whose macros would apply here (kernel_ir/headers.py)
#include "asim/api/cube_tiling.h"
#include "asim/api/tensor.h"

namespace AscendC {
constexpr int32_t DEFAULT_C0_SIZE = 32;     // bytes of a row of a fractal
}

enum class CubeFormat { ND = 0, NZ, ZN, ZZ, NN, ND_ALIGN, SCALAR, VECTOR, ROW_MAJOR = ND, COLUMN_MAJOR = 8 };
enum class LayoutMode { NONE = 0, BSNGD, SBNGD, BNGS1S2, NORMAL };
enum class BatchMode { NONE = 0, BATCH_LESS_THAN_L1, BATCH_LARGE_THAN_L1, SINGLE_LARGE_THAN_L1 };
enum BatchOutMode { SINGLE_BATCH = 0, MULTI_BATCH, DYNAMIC };
enum class IterateOrder { ORDER_M = 0, ORDER_N, UNDEF };
enum class ScheduleType { INNER_PRODUCT = 0, OUTER_PRODUCT };
enum IterateMode : uint8_t {
    ITERATE_MODE_NORMAL = 1, ITERATE_MODE_ALL = 2, ITERATE_MODE_BATCH = 4, ITERATE_MODE_N_BATCH = 8, ITERATE_MODE_DEFAULT = 255
};

struct MatmulConfig {
    bool doNorm = false;
    bool doBasicBlock = false;
    bool doMultiDataLoad = false;
    uint32_t basicM = 0;
    uint32_t basicN = 0;
    uint32_t basicK = 0;
    bool intrinsicsCheck = false;
    bool isNBatch = false;
    bool enVecND2NZ = false;
    bool doSpecialBasicBlock = false;
    uint32_t doMTE2Preload = 0;
    uint32_t singleCoreM = 0;
    uint32_t singleCoreN = 0;
    uint32_t singleCoreK = 0;
    uint32_t stepM = 0;
    uint32_t stepN = 0;
    uint32_t baseMN = 0;
    uint32_t singleCoreMN = 0;
    bool enUnitFlag = true;
    bool isPerTensor = false;
    bool hasAntiQuantOffset = false;
    bool doIBShareNorm = false;
    bool doSpecialMDL = false;
    bool enableInit = true;
    BatchMode batchMode = BatchMode::NONE;
    bool enableEnd = true;
    bool enableGetTensorC = true;
    bool enableSetOrgShape = true;
    bool enableSetBias = true;
    bool enableSetTail = true;
    bool enableQuantVector = true;
    bool enableSetDefineData = true;
    uint8_t iterateMode = ITERATE_MODE_DEFAULT;
    bool enableReuse = true;
    bool enableUBReuse = true;
    bool enableL1CacheUB = false;
    bool intraBlockPartSum = false;
    IterateOrder iterateOrder = IterateOrder::UNDEF;
    ScheduleType scheduleType = ScheduleType::INNER_PRODUCT;
    bool enableDoubleCache = false;
    bool isBiasBatch = true;
    bool enableStaticPadZeros = false;
    bool isPartialOutput = false;
    bool enableMixDualMaster = false;
    bool isA2B2Shared = false;
    bool isEnableChannelSplit = false;
    bool enableKdimReorderLoad = false;
    bool isCO1Shared = false;
    uint32_t sharedCO1BufferSize = 64 * 1024;
    BatchOutMode bmmOutMode = BatchOutMode::SINGLE_BATCH;
    bool enableL1BankConflictOptimise = false;
    bool enableRelu = false;
};

enum class MatmulConfigMode { CONFIG_NORM, CONFIG_MDL, CONFIG_SPECIALMDL, CONFIG_IBSHARE };

struct MatmulShapeParams {
    uint32_t singleCoreM, singleCoreN, singleCoreK, basicM, basicN, basicK;
};

struct MatmulQuantParams {
    bool isPerTensor;
    bool hasAntiQuantOffset;
};

struct MatmulBatchParams {
    bool isNBatch;
    BatchMode batchMode;
    bool isBiasBatch = true;
    BatchOutMode bmmOutMode = BatchOutMode::SINGLE_BATCH;
};

struct MatmulFuncParams {
    bool intrinsicsCheck = false;
    bool enVecND2NZ = false;
    bool enableDoubleCache = false;
    bool enableL1CacheUB = false;
    uint32_t doMTE2Preload = 0;
    IterateOrder iterateOrder = IterateOrder::UNDEF;
    ScheduleType scheduleType = ScheduleType::INNER_PRODUCT;
    bool enableReuse = true;
    bool enableUBReuse = true;
    bool isPartialOutput = false;
    bool isA2B2Shared = false;
    bool isEnableChannelSplit = false;
    bool enableKdimReorderLoad = false;
    bool enableL1BankConflictOptimise = false;
    bool enableRelu = false;
};

struct MatmulBiasParams {
    bool enableSetBias = true;
};

// A plan that is known when the kernel is compiled. Members of a plan that nothing is known of are 0.
struct MatmulApiStaticTiling : TCubeTiling {
    MatmulConfig cfg;
};

__aicore__ constexpr MatmulConfig GetNormalConfig(bool intrinsicsLimit = false, bool batchLoop = false, bool isVecND2NZ = false,
                                                  BatchMode bmmMode = BatchMode::BATCH_LESS_THAN_L1, bool isMsgReuse = true,
                                                  IterateOrder iterateOrder = IterateOrder::UNDEF,
                                                  ScheduleType scheduleType = ScheduleType::INNER_PRODUCT, bool enUnitFlag = true,
                                                  bool enableMixDualMaster = false,
                                                  BatchOutMode bmmOutMode = BatchOutMode::SINGLE_BATCH) {
    MatmulConfig config{};
    config.doNorm = true;
    config.intrinsicsCheck = intrinsicsLimit;
    config.isNBatch = batchLoop;
    config.enVecND2NZ = isVecND2NZ;
    config.batchMode = bmmMode;
    config.enableReuse = isMsgReuse;
    config.iterateOrder = iterateOrder;
    config.scheduleType = scheduleType;
    config.enUnitFlag = enUnitFlag;
    config.enableMixDualMaster = enableMixDualMaster;
    config.bmmOutMode = bmmOutMode;
    return config;
}

__aicore__ constexpr MatmulConfig GetMDLConfig(bool intrinsicsLimit = false, bool batchLoop = false, uint32_t doMTE2Preload = 0,
                                               bool isVecND2NZ = false, bool isPerTensor = false, bool hasAntiQuantOffset = false,
                                               bool enUnitFlag = false, bool isMsgReuse = true, bool enableUBReuse = true,
                                               bool enableL1CacheUB = false, bool enableMixDualMaster = false,
                                               bool enableKdimReorderLoad = false, bool enableL1BankConflictOptimise = false) {
    MatmulConfig config{};
    config.doMultiDataLoad = true;
    config.intrinsicsCheck = intrinsicsLimit;
    config.isNBatch = batchLoop;
    config.doMTE2Preload = doMTE2Preload;
    config.enVecND2NZ = isVecND2NZ;
    config.isPerTensor = isPerTensor;
    config.hasAntiQuantOffset = hasAntiQuantOffset;
    config.enUnitFlag = enUnitFlag;
    config.enableReuse = isMsgReuse;
    config.enableUBReuse = enableUBReuse;
    config.enableL1CacheUB = enableL1CacheUB;
    config.enableMixDualMaster = enableMixDualMaster;
    config.enableKdimReorderLoad = enableKdimReorderLoad;
    config.enableL1BankConflictOptimise = enableL1BankConflictOptimise;
    return config;
}

__aicore__ constexpr MatmulConfig GetSpecialMDLConfig(bool intrinsicsLimit = false, bool batchLoop = false,
                                                      uint32_t doMTE2Preload = 0, bool isVecND2NZ = false,
                                                      bool isPerTensor = false, bool hasAntiQuantOffset = false) {
    MatmulConfig config = GetMDLConfig(intrinsicsLimit, batchLoop, doMTE2Preload, isVecND2NZ, isPerTensor, hasAntiQuantOffset);
    config.doMultiDataLoad = false;
    config.doSpecialMDL = true;
    return config;
}

__aicore__ constexpr MatmulConfig GetBasicConfig(uint32_t basicM, uint32_t basicN, uint32_t basicK, bool intrinsicsLimit = false,
                                                 bool batchLoop = false, BatchMode bmmMode = BatchMode::BATCH_LESS_THAN_L1) {
    MatmulConfig config = GetNormalConfig(intrinsicsLimit, batchLoop, false, bmmMode);
    config.doNorm = false;
    config.doBasicBlock = true;
    config.basicM = basicM;
    config.basicN = basicN;
    config.basicK = basicK;
    return config;
}

__aicore__ constexpr MatmulConfig GetIBShareNormConfig(bool intrinsicsLimit = false, bool batchLoop = false, bool isVecND2NZ = false,
                                                       BatchMode bmmMode = BatchMode::BATCH_LESS_THAN_L1, bool isDoubleCache = false,
                                                       bool enUnitFlag = true) {
    MatmulConfig config = GetNormalConfig(intrinsicsLimit, batchLoop, isVecND2NZ, bmmMode);
    config.doNorm = false;
    config.doIBShareNorm = true;
    config.enableDoubleCache = isDoubleCache;
    config.enUnitFlag = enUnitFlag;
    return config;
}

constexpr MatmulConfig CFG_NORM = GetNormalConfig();
constexpr MatmulConfig CFG_MDL = GetMDLConfig();
constexpr MatmulConfig MM_CFG_BB = GetBasicConfig(128, 128, 128);
constexpr MatmulConfig CFG_IBSHARE_NORM = GetIBShareNormConfig();

namespace asim {

constexpr void configure(MatmulConfig &config, const MatmulShapeParams &shape) {
    config.singleCoreM = shape.singleCoreM;
    config.singleCoreN = shape.singleCoreN;
    config.singleCoreK = shape.singleCoreK;
    config.basicM = shape.basicM;
    config.basicN = shape.basicN;
    config.basicK = shape.basicK;
}
constexpr void configure(MatmulConfig &config, const MatmulQuantParams &quantisation) {
    config.isPerTensor = quantisation.isPerTensor;
    config.hasAntiQuantOffset = quantisation.hasAntiQuantOffset;
}
constexpr void configure(MatmulConfig &config, const MatmulBatchParams &batches) {
    config.isNBatch = batches.isNBatch;
    config.batchMode = batches.batchMode;
    config.isBiasBatch = batches.isBiasBatch;
    config.bmmOutMode = batches.bmmOutMode;
}
constexpr void configure(MatmulConfig &config, const MatmulFuncParams &options) {
    config.intrinsicsCheck = options.intrinsicsCheck;
    config.enVecND2NZ = options.enVecND2NZ;
    config.enableDoubleCache = options.enableDoubleCache;
    config.enableL1CacheUB = options.enableL1CacheUB;
    config.doMTE2Preload = options.doMTE2Preload;
    config.iterateOrder = options.iterateOrder;
    config.scheduleType = options.scheduleType;
    config.enableReuse = options.enableReuse;
    config.enableUBReuse = options.enableUBReuse;
    config.isPartialOutput = options.isPartialOutput;
    config.isA2B2Shared = options.isA2B2Shared;
    config.isEnableChannelSplit = options.isEnableChannelSplit;
    config.enableKdimReorderLoad = options.enableKdimReorderLoad;
    config.enableL1BankConflictOptimise = options.enableL1BankConflictOptimise;
    config.enableRelu = options.enableRelu;
}
constexpr void configure(MatmulConfig &config, const MatmulBiasParams &bias) { config.enableSetBias = bias.enableSetBias; }

constexpr const MatmulConfig &config_of(const MatmulConfig &config) { return config; }
constexpr const MatmulConfig &config_of(const MatmulApiStaticTiling &tiling) { return tiling.cfg; }

}  // namespace asim

template <MatmulConfigMode mode, typename... Parameters>
__aicore__ constexpr MatmulConfig GetMMConfig(const Parameters &...parameters) {
    MatmulConfig config = mode == MatmulConfigMode::CONFIG_NORM        ? CFG_NORM
                          : mode == MatmulConfigMode::CONFIG_MDL       ? CFG_MDL
                          : mode == MatmulConfigMode::CONFIG_SPECIALMDL ? GetSpecialMDLConfig()
                                                                       : CFG_IBSHARE_NORM;
    (asim::configure(config, parameters), ...);
    return config;
}
