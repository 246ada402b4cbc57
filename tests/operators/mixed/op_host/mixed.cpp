// Host side of Mixed: one group of cores for each 128 rows.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(MixedTilingData)
TILING_DATA_FIELD_DEF(uint32_t, k);
TILING_DATA_FIELD_DEF(uint32_t, n);
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(Mixed, MixedTilingData)

constexpr uint32_t ROWS = 128;

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    const gert::Shape a = context->GetInputShape(0)->GetStorageShape();
    const gert::Shape b = context->GetInputShape(1)->GetStorageShape();
    MixedTilingData tiling;
    tiling.set_k(b.GetDim(0));
    tiling.set_n(b.GetDim(1));
    context->SetBlockDim(a.GetDim(0) / ROWS);
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    context->GetWorkspaceSizes(1)[0] = platform.GetLibApiWorkSpaceSize() + a.GetDim(0) * b.GetDim(1) * sizeof(float);
    return ge::GRAPH_SUCCESS;
}
} // namespace optiling

namespace ge {
static ge::graphStatus InferShape(gert::InferShapeContext* context)
{
    return GRAPH_SUCCESS;
}
} // namespace ge

namespace ops {
class Mixed : public OpDef {
public:
    explicit Mixed(const char* name) : OpDef(name)
    {
        this->Input("a").ParamType(REQUIRED).DataType({ge::DT_FLOAT16}).Format({ge::FORMAT_ND});
        this->Input("b").ParamType(REQUIRED).DataType({ge::DT_FLOAT16}).Format({ge::FORMAT_ND});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->SetInferShape(ge::InferShape);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(Mixed);
} // namespace ops
