// Host side of CumSum: tiling, shape inference and operator definition.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(CumSumTilingData)
TILING_DATA_FIELD_DEF(uint32_t, rowNum);     // rows
TILING_DATA_FIELD_DEF(uint32_t, columnNum);  // elements of one row
TILING_DATA_FIELD_DEF(uint32_t, tileLength); // columns of one tile
TILING_DATA_FIELD_DEF(uint32_t, partRows);   // rows of one core
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(CumSum, CumSumTilingData)

constexpr uint32_t TILE_LENGTH = 2048;
constexpr uint32_t ALIGN_ELEMS = 16;
constexpr uint64_t KEY_COLUMNS = 1;
constexpr uint64_t KEY_ROWS = 2;

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const uint32_t coreNum = platform.GetCoreNumAiv();
    const gert::Shape& shape = context->GetInputShape(0)->GetStorageShape();
    if (shape.GetDimNum() != 2 || shape.GetShapeSize() == 0 || coreNum == 0) {
        return ge::GRAPH_FAILED;
    }
    const uint32_t rowNum = shape.GetDim(0), columnNum = shape.GetDim(1);

    CumSumTilingData tiling;
    tiling.set_rowNum(rowNum);
    tiling.set_columnNum(columnNum);
    if (columnNum >= coreNum * ALIGN_ELEMS || rowNum < coreNum) {
        // Enough columns for all cores: each goes through all rows of its columns.
        uint32_t tileLength = (columnNum + coreNum - 1) / coreNum;
        tileLength = (tileLength + ALIGN_ELEMS - 1) / ALIGN_ELEMS * ALIGN_ELEMS;
        tileLength = tileLength < TILE_LENGTH ? tileLength : TILE_LENGTH;
        const uint32_t tileNum = (columnNum + tileLength - 1) / tileLength;
        tiling.set_tileLength(tileLength);
        tiling.set_partRows(rowNum);
        context->SetBlockDim(tileNum < coreNum ? tileNum : coreNum);
        context->SetTilingKey(KEY_COLUMNS);
    } else {
        // Few columns: the cores share the rows and tell each other the sums of theirs.
        const uint32_t partRows = (rowNum + coreNum - 1) / coreNum;
        tiling.set_tileLength((columnNum + ALIGN_ELEMS - 1) / ALIGN_ELEMS * ALIGN_ELEMS);
        tiling.set_partRows(partRows);
        context->SetBlockDim((rowNum + partRows - 1) / partRows);
        context->SetTilingKey(KEY_ROWS);
    }
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    size_t* workspaceSizes = context->GetWorkspaceSizes(1);
    workspaceSizes[0] = platform.GetLibApiWorkSpaceSize() + size_t(coreNum) * tiling.get_tileLength() * sizeof(float);
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
class CumSum : public OpDef {
public:
    explicit CumSum(const char* name) : OpDef(name)
    {
        this->Input("x")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT, ge::DT_FLOAT16, ge::DT_INT32})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
        this->Output("y")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT, ge::DT_FLOAT16, ge::DT_INT32})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});

        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(CumSum);
} // namespace ops
