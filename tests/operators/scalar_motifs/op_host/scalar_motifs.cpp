// Host side of ScalarMotifs: each core takes the same number of rows.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(ScalarMotifsTilingData)
TILING_DATA_FIELD_DEF(uint32_t, rowNum);    // rows of one core
TILING_DATA_FIELD_DEF(uint32_t, rowLength); // elements of a row
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(ScalarMotifs, ScalarMotifsTilingData)

constexpr uint32_t CORES = 4;

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    const auto& shape = context->GetInputShape(0)->GetStorageShape();
    ScalarMotifsTilingData tiling;
    tiling.set_rowNum(shape.GetDim(0) / CORES);
    tiling.set_rowLength(shape.GetDim(1));
    context->SetBlockDim(CORES);
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
class ScalarMotifs : public OpDef {
public:
    explicit ScalarMotifs(const char* name) : OpDef(name)
    {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->SetInferShape(ge::InferShape);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(ScalarMotifs);
} // namespace ops
