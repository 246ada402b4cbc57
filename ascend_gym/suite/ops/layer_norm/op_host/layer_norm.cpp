// Host side of LayerNorm: tiling, shape inference and operator definition.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(LayerNormTilingData)
TILING_DATA_FIELD_DEF(uint32_t, columnNum);     // elements of one row
TILING_DATA_FIELD_DEF(uint32_t, smallCoreRows); // rows of a small core
TILING_DATA_FIELD_DEF(uint32_t, bigCoreNum);    // cores that take one row more, which come first
TILING_DATA_FIELD_DEF(uint32_t, tileLength);    // elements of one tile
TILING_DATA_FIELD_DEF(float, epsilon);          // added to the variance
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(LayerNorm, LayerNormTilingData)

constexpr uint32_t TILE_LENGTH = 4096;
constexpr uint32_t MAX_ROW_LENGTH = 8192;
constexpr uint32_t ALIGN_ELEMS = 32;
constexpr uint64_t KEY_SHORT_ROWS = 1;
constexpr uint64_t KEY_LONG_ROWS = 2;

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
    const uint32_t blockDim = rowNum < coreNum ? rowNum : coreNum;

    // A row is kept in UB as long as it fits; longer ones are read again for each pass.
    const uint64_t key = columnNum <= MAX_ROW_LENGTH ? KEY_SHORT_ROWS : KEY_LONG_ROWS;
    context->SetTilingKey(key);

    LayerNormTilingData tiling;
    tiling.set_columnNum(columnNum);
    tiling.set_smallCoreRows(rowNum / blockDim);
    tiling.set_bigCoreNum(rowNum % blockDim);
    tiling.set_tileLength(key == KEY_SHORT_ROWS ? (columnNum + ALIGN_ELEMS - 1) / ALIGN_ELEMS * ALIGN_ELEMS : TILE_LENGTH);
    tiling.set_epsilon(*context->GetAttrs()->GetAttrPointer<float>(0));
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
    const gert::Shape* xShape = context->GetInputShape(0);
    *context->GetOutputShape(0) = *xShape;
    for (size_t i = 1; i <= 2; i++) {
        *context->GetOutputShape(i) = *xShape;
        context->GetOutputShape(i)->SetDim(xShape->GetDimNum() - 1, 1);
    }
    return GRAPH_SUCCESS;
}

static ge::graphStatus InferDataType(gert::InferDataTypeContext* context)
{
    context->SetOutputDataType(0, context->GetInputDataType(0));
    context->SetOutputDataType(1, ge::DT_FLOAT);
    context->SetOutputDataType(2, ge::DT_FLOAT);
    return GRAPH_SUCCESS;
}
} // namespace ge

namespace ops {
class LayerNorm : public OpDef {
public:
    explicit LayerNorm(const char* name) : OpDef(name)
    {
        this->Input("x")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_BF16})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
        this->Input("gamma")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_BF16})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
        this->Input("beta")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_BF16})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
        this->Output("y")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_BF16})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
        this->Output("mean")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT, ge::DT_FLOAT, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
        this->Output("rstd")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT, ge::DT_FLOAT, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
        this->Attr("epsilon").AttrType(OPTIONAL).Float(1e-5);

        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(LayerNorm);
} // namespace ops
