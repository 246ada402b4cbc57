// Host side of Arange: tiling, shape inference and operator definition.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(ArangeTilingData)
TILING_DATA_FIELD_DEF(uint64_t, totalLength); // elements of the result
TILING_DATA_FIELD_DEF(uint32_t, tileLength);  // elements of one tile
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(Arange, ArangeTilingData)

constexpr uint32_t TILE_LENGTH = 2048;

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const uint32_t coreNum = platform.GetCoreNumAiv();
    const int64_t count = *context->GetAttrs()->GetAttrPointer<int64_t>(0);
    if (count <= 0 || coreNum == 0) {
        return ge::GRAPH_FAILED;
    }
    const uint64_t tileNum = (count + TILE_LENGTH - 1) / TILE_LENGTH;

    ArangeTilingData tiling;
    tiling.set_totalLength(count);
    tiling.set_tileLength(TILE_LENGTH);
    context->SetBlockDim(tileNum < coreNum ? tileNum : coreNum);
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    size_t* workspaceSizes = context->GetWorkspaceSizes(1);
    workspaceSizes[0] = 0;
    return ge::GRAPH_SUCCESS;
}
} // namespace optiling

namespace ge {
static ge::graphStatus InferShape(gert::InferShapeContext* context)
{
    gert::Shape* shape = context->GetOutputShape(0);
    shape->SetDimNum(1);
    shape->SetDim(0, *context->GetAttrs()->GetAttrPointer<int64_t>(0));
    return GRAPH_SUCCESS;
}

static ge::graphStatus InferDataType(gert::InferDataTypeContext* context)
{
    context->SetOutputDataType(0, context->GetInputDataType(0));
    return GRAPH_SUCCESS;
}
} // namespace ge

namespace ops {
class Arange : public OpDef {
public:
    explicit Arange(const char* name) : OpDef(name)
    {
        this->Input("start")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT, ge::DT_INT32})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Input("step")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT, ge::DT_INT32})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Output("y")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT, ge::DT_INT32})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Attr("count").AttrType(REQUIRED).Int();

        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(Arange);
} // namespace ops
