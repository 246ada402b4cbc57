// Host side of Eye: tiling, shape inference and operator definition.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(EyeTilingData)
TILING_DATA_FIELD_DEF(uint32_t, columnNum);     // elements of one row
TILING_DATA_FIELD_DEF(uint32_t, smallCoreRows); // rows of a small core
TILING_DATA_FIELD_DEF(uint32_t, bigCoreNum);    // cores that take one row more, which come first
TILING_DATA_FIELD_DEF(uint32_t, tileLength);    // elements of one tile
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(Eye, EyeTilingData)

constexpr uint32_t TILE_LENGTH = 4096;

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const uint32_t coreNum = platform.GetCoreNumAiv();
    const int64_t rowNum = *context->GetAttrs()->GetAttrPointer<int64_t>(0);
    const int64_t columnNum = *context->GetAttrs()->GetAttrPointer<int64_t>(1);
    if (rowNum <= 0 || columnNum <= 0 || coreNum == 0) {
        return ge::GRAPH_FAILED;
    }
    const uint32_t blockDim = rowNum < coreNum ? rowNum : coreNum;

    EyeTilingData tiling;
    tiling.set_columnNum(columnNum);
    tiling.set_smallCoreRows(rowNum / blockDim);
    tiling.set_bigCoreNum(rowNum % blockDim);
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
    gert::Shape* shape = context->GetOutputShape(0);
    shape->SetDimNum(2);
    shape->SetDim(0, *context->GetAttrs()->GetAttrPointer<int64_t>(0));
    shape->SetDim(1, *context->GetAttrs()->GetAttrPointer<int64_t>(1));
    return GRAPH_SUCCESS;
}

static ge::graphStatus InferDataType(gert::InferDataTypeContext* context)
{
    const ge::DataType known[] = {ge::DT_FLOAT, ge::DT_FLOAT16, ge::DT_INT32};
    context->SetOutputDataType(0, known[*context->GetAttrs()->GetAttrPointer<int64_t>(2)]);
    return GRAPH_SUCCESS;
}
} // namespace ge

namespace ops {
class Eye : public OpDef {
public:
    explicit Eye(const char* name) : OpDef(name)
    {
        this->Output("y")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT, ge::DT_FLOAT16, ge::DT_INT32})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
        this->Attr("rows").AttrType(REQUIRED).Int();
        this->Attr("columns").AttrType(REQUIRED).Int();
        this->Attr("dtype").AttrType(OPTIONAL).Int(0);

        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(Eye);
} // namespace ops
