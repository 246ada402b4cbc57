// Host side of ScatterAdd: tiling, shape inference and operator definition.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(ScatterAddTilingData)
TILING_DATA_FIELD_DEF(uint32_t, columnNum);     // elements of one row
TILING_DATA_FIELD_DEF(uint32_t, smallCoreRows); // rows of a small core
TILING_DATA_FIELD_DEF(uint32_t, bigCoreNum);    // cores that take one row more, which come first
TILING_DATA_FIELD_DEF(uint32_t, tileLength);    // elements of a row moved at a time
TILING_DATA_FIELD_DEF(uint32_t, indexTile);     // indices fetched at a time
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(ScatterAdd, ScatterAddTilingData)

constexpr uint32_t TILE_LENGTH = 1024;
constexpr uint32_t INDEX_TILE = 64;

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const uint32_t coreNum = platform.GetCoreNumAiv();
    const gert::Shape& shape = context->GetInputShape(0)->GetStorageShape();
    const uint32_t indexNum = context->GetInputShape(1)->GetStorageShape().GetShapeSize();
    if (shape.GetDimNum() != 2 || shape.GetShapeSize() == 0 || indexNum == 0 || coreNum == 0) {
        return ge::GRAPH_FAILED;
    }
    const uint32_t blockDim = indexNum < coreNum ? indexNum : coreNum;

    ScatterAddTilingData tiling;
    tiling.set_columnNum(shape.GetDim(1));
    tiling.set_smallCoreRows(indexNum / blockDim);
    tiling.set_bigCoreNum(indexNum % blockDim);
    tiling.set_tileLength(TILE_LENGTH);
    tiling.set_indexTile(INDEX_TILE);
    context->SetBlockDim(blockDim);
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
    *context->GetOutputShape(0) = *context->GetInputShape(0);
    return GRAPH_SUCCESS;
}

static ge::graphStatus InferDataType(gert::InferDataTypeContext* context)
{
    context->SetOutputDataType(0, context->GetInputDataType(0));
    return GRAPH_SUCCESS;
}
} // namespace ge

namespace ops {
class ScatterAdd : public OpDef {
public:
    explicit ScatterAdd(const char* name) : OpDef(name)
    {
        this->Input("var")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT, ge::DT_INT32})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Input("indices")
            .ParamType(REQUIRED)
            .DataType({ge::DT_INT32, ge::DT_INT32})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Input("updates")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT, ge::DT_INT32})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Output("var")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT, ge::DT_INT32})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});

        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(ScatterAdd);
} // namespace ops
