// Host side of Target: what candidate.h decides, written down.
#include "candidate.h"
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(TargetTilingData)
TILING_DATA_FIELD_DEF(uint32_t, coreLength); // elements of one core, a multiple of a tile
TILING_DATA_FIELD_DEF(uint32_t, tileLength); // elements of one tile
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(Target, TargetTilingData)

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    Plan::Begin(context);
    TargetTilingData tiling;
    tiling.set_coreLength(context->GetInputShape(0)->GetStorageShape().GetShapeSize() / Plan::Cores());
    tiling.set_tileLength(Plan::TileLength());
    context->SetBlockDim(Plan::Cores());
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    context->GetWorkspaceSizes(1)[0] = Plan::WorkspaceBytes();
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
class Target : public OpDef {
public:
    explicit Target(const char* name) : OpDef(name)
    {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->SetInferShape(ge::InferShape);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(Target);
} // namespace ops
