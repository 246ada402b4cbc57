// Host side of DynamicQuant: tiling, shape inference and operator definition.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(DynamicQuantTilingData)
TILING_DATA_FIELD_DEF(uint32_t, columnNum);     // elements of one row
TILING_DATA_FIELD_DEF(uint32_t, smallCoreRows); // rows of a small core
TILING_DATA_FIELD_DEF(uint32_t, bigCoreNum);    // cores that take one row more, which come first
TILING_DATA_FIELD_DEF(uint32_t, tileLength);    // elements of a row with its padding
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(DynamicQuant, DynamicQuantTilingData)

constexpr uint32_t MAX_ROW_LENGTH = 8192;
constexpr uint32_t ALIGN_ELEMS = 32;

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
    if (columnNum > MAX_ROW_LENGTH) {
        return ge::GRAPH_FAILED;
    }

    DynamicQuantTilingData tiling;
    tiling.set_columnNum(columnNum);
    tiling.set_smallCoreRows(rowNum / blockDim);
    tiling.set_bigCoreNum(rowNum % blockDim);
    tiling.set_tileLength((columnNum + ALIGN_ELEMS - 1) / ALIGN_ELEMS * ALIGN_ELEMS);
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
    *context->GetOutputShape(1) = *xShape;
    context->GetOutputShape(1)->SetDim(xShape->GetDimNum() - 1, 1);
    return GRAPH_SUCCESS;
}

static ge::graphStatus InferDataType(gert::InferDataTypeContext* context)
{
    context->SetOutputDataType(0, ge::DT_INT8);
    context->SetOutputDataType(1, ge::DT_FLOAT);
    return GRAPH_SUCCESS;
}
} // namespace ge

namespace ops {
class DynamicQuant : public OpDef {
public:
    explicit DynamicQuant(const char* name) : OpDef(name)
    {
        this->Input("x")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_BF16})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Output("y")
            .ParamType(REQUIRED)
            .DataType({ge::DT_INT8, ge::DT_INT8})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Output("scale")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});

        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(DynamicQuant);
} // namespace ops
