// Host side of Tril: tiling, shape inference and operator definition.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(TrilTilingData)
TILING_DATA_FIELD_DEF(uint32_t, columnNum);     // elements of one row
TILING_DATA_FIELD_DEF(uint32_t, smallCoreRows); // rows of a small core
TILING_DATA_FIELD_DEF(uint32_t, bigCoreNum);    // cores that take one row more, which come first
TILING_DATA_FIELD_DEF(uint32_t, matrixRows);    // rows of one matrix
TILING_DATA_FIELD_DEF(int32_t, diagonal);       // last diagonal that is kept
TILING_DATA_FIELD_DEF(uint32_t, tileLength);    // elements of one tile
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(Tril, TrilTilingData)

constexpr uint32_t TILE_LENGTH = 2048;

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const uint32_t coreNum = platform.GetCoreNumAiv();
    const gert::Shape& shape = context->GetInputShape(0)->GetStorageShape();
    if (shape.GetDimNum() == 0 || shape.GetShapeSize() == 0 || coreNum == 0) {
        return ge::GRAPH_FAILED;
    }
    const uint32_t columnNum = shape.GetDim(shape.GetDimNum() - 1);
    const uint32_t rowNum = shape.GetShapeSize() / columnNum;
    if (shape.GetDimNum() < 2) {
        return ge::GRAPH_FAILED;
    }
    const uint32_t blockDim = rowNum < coreNum ? rowNum : coreNum;

    TrilTilingData tiling;
    tiling.set_columnNum(columnNum);
    tiling.set_smallCoreRows(rowNum / blockDim);
    tiling.set_bigCoreNum(rowNum % blockDim);
    tiling.set_matrixRows(shape.GetDim(shape.GetDimNum() - 2));
    tiling.set_diagonal(*context->GetAttrs()->GetAttrPointer<int64_t>(0));
    tiling.set_tileLength(TILE_LENGTH);
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
class Tril : public OpDef {
public:
    explicit Tril(const char* name) : OpDef(name)
    {
        this->Input("x")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Output("y")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Attr("diagonal").AttrType(OPTIONAL).Int(0);

        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(Tril);
} // namespace ops
