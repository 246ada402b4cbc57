// Host side of InPlace: equal shares for all cores, tiles of a fixed length.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(InPlaceTilingData)
TILING_DATA_FIELD_DEF(uint32_t, coreLength); // elements of one core, a multiple of a tile
TILING_DATA_FIELD_DEF(uint32_t, tileLength); // elements of one tile
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(InPlace, InPlaceTilingData)

constexpr uint32_t TILE_LENGTH = 1024;

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    const uint32_t coreNum = platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetCoreNumAiv();
    InPlaceTilingData tiling;
    tiling.set_coreLength(context->GetInputShape(0)->GetStorageShape().GetShapeSize() / coreNum);
    tiling.set_tileLength(TILE_LENGTH);
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
class InPlace : public OpDef {
public:
    explicit InPlace(const char* name) : OpDef(name)
    {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->SetInferShape(ge::InferShape);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(InPlace);
} // namespace ops
