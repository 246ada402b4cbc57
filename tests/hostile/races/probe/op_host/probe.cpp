// Host side of Probe: four blocks, and the kernel of the case's choice.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(ProbeTilingData)
TILING_DATA_FIELD_DEF(uint32_t, coreLength); // elements of one core
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(Probe, ProbeTilingData)

constexpr uint32_t BLOCK_DIM = 4;
constexpr size_t USER_WORKSPACE_BYTES = 65536;

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    ProbeTilingData tiling;
    tiling.set_coreLength(context->GetInputShape(0)->GetStorageShape().GetShapeSize() / BLOCK_DIM);
    context->SetBlockDim(BLOCK_DIM);
    context->SetTilingKey(*context->GetAttrs()->GetInt(0));
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    const auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    context->GetWorkspaceSizes(1)[0] = platform.GetLibApiWorkSpaceSize() + USER_WORKSPACE_BYTES;
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
class Probe : public OpDef {
public:
    explicit Probe(const char* name) : OpDef(name)
    {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Attr("kernel").AttrType(REQUIRED).Int();
        this->SetInferShape(ge::InferShape);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(Probe);
} // namespace ops
