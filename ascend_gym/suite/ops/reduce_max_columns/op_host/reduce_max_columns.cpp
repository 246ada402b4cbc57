// Host side of ReduceMaxColumns: tiling, shape inference and operator definition.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(ReduceMaxColumnsTilingData)
TILING_DATA_FIELD_DEF(uint32_t, rowNum);     // rows
TILING_DATA_FIELD_DEF(uint32_t, columnNum);  // elements of one row
TILING_DATA_FIELD_DEF(uint32_t, tileLength); // columns of one tile
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(ReduceMaxColumns, ReduceMaxColumnsTilingData)

constexpr uint32_t TILE_LENGTH = 2048;
constexpr uint32_t ALIGN_ELEMS = 16;

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const uint32_t coreNum = platform.GetCoreNumAiv();
    const gert::Shape& shape = context->GetInputShape(0)->GetStorageShape();
    if (shape.GetDimNum() != 2 || shape.GetShapeSize() == 0 || coreNum == 0) {
        return ge::GRAPH_FAILED;
    }
    const uint32_t columnNum = shape.GetDim(1);
    // Columns are dealt out to the cores in whole blocks of memory, at most a tile for each.
    uint32_t tileLength = (columnNum + coreNum - 1) / coreNum;
    tileLength = (tileLength + ALIGN_ELEMS - 1) / ALIGN_ELEMS * ALIGN_ELEMS;
    tileLength = tileLength < TILE_LENGTH ? tileLength : TILE_LENGTH;
    const uint32_t tileNum = (columnNum + tileLength - 1) / tileLength;

    ReduceMaxColumnsTilingData tiling;
    tiling.set_rowNum(shape.GetDim(0));
    tiling.set_columnNum(columnNum);
    tiling.set_tileLength(tileLength);
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
    const gert::Shape* xShape = context->GetInputShape(0);
    gert::Shape* shape = context->GetOutputShape(0);
    shape->SetDimNum(1);
    shape->SetDim(0, xShape->GetDim(1));
    return GRAPH_SUCCESS;
}

static ge::graphStatus InferDataType(gert::InferDataTypeContext* context)
{
    context->SetOutputDataType(0, context->GetInputDataType(0));
    return GRAPH_SUCCESS;
}
} // namespace ge

namespace ops {
class ReduceMaxColumns : public OpDef {
public:
    explicit ReduceMaxColumns(const char* name) : OpDef(name)
    {
        this->Input("x")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_INT32})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
        this->Output("y")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_INT32})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});

        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(ReduceMaxColumns);
} // namespace ops
