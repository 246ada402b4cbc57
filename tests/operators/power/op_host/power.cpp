// Host side of Power: as many decisions as there are rules about them.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(PowerTilingData)
TILING_DATA_FIELD_DEF(uint64_t, totalLength); // elements of the whole tensor
TILING_DATA_FIELD_DEF(uint64_t, coreLength);  // elements of one core
TILING_DATA_FIELD_DEF(uint32_t, tileLength);  // elements of one tile
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(Power, PowerTilingData)

constexpr uint64_t BLOCK_SIZE = 32;            // bytes that a core's share is a multiple of
constexpr uint64_t UB_RESERVED_BYTES = 131072; // bytes of UB that the tiles leave free
constexpr uint64_t SHARES = 7;                 // parts of UB, six of which the kernel can use
constexpr uint64_t CORE_BLOCKS = 8;            // blocks that a core gets at least

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    uint64_t ubSize = 0;
    platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, ubSize);
    uint64_t coreNum = platform.GetCoreNumAiv();
    const uint64_t totalLength = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
    const uint64_t tileLength = (ubSize - UB_RESERVED_BYTES) / SHARES / 32 * 8;
    const uint64_t blocks = (totalLength * sizeof(float) + BLOCK_SIZE - 1) / BLOCK_SIZE;
    const uint64_t units = (blocks + CORE_BLOCKS - 1) / CORE_BLOCKS;
    if (tileLength * 2 >= totalLength) {
        coreNum = 1;
    } else {
        coreNum = coreNum < units ? coreNum : units;
    }
    const uint64_t coreLength = (blocks + coreNum - 1) / coreNum * BLOCK_SIZE / sizeof(float);

    PowerTilingData tiling;
    tiling.set_totalLength(totalLength);
    tiling.set_coreLength(coreLength);
    tiling.set_tileLength(tileLength);
    context->SetTilingKey(1);
    context->SetBlockDim(coreNum);
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    context->GetWorkspaceSizes(1)[0] = 0;
    return ge::GRAPH_SUCCESS;
}
} // namespace optiling

namespace ge {
static ge::graphStatus InferShape(gert::InferShapeContext* context)
{
    *context->GetOutputShape(0) = *context->GetInputShape(0);
    return GRAPH_SUCCESS;
}
} // namespace ge

namespace ops {
class Power : public OpDef {
public:
    explicit Power(const char* name) : OpDef(name)
    {
        this->Input("x1").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Input("x2").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->SetInferShape(ge::InferShape);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(Power);
} // namespace ops
