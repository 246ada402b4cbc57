// Host side of ReduceSum: tiling, shape inference and operator definition.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(ReduceSumTilingData)
TILING_DATA_FIELD_DEF(uint64_t, columnNum);  // elements of one row
TILING_DATA_FIELD_DEF(uint32_t, rowNum);     // rows
TILING_DATA_FIELD_DEF(uint32_t, partNum);    // parts of a row
TILING_DATA_FIELD_DEF(uint64_t, partLength); // elements of a part
TILING_DATA_FIELD_DEF(uint32_t, tileLength); // elements of one tile
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(ReduceSum, ReduceSumTilingData)

constexpr uint32_t TILE_LENGTH = 4096;
constexpr uint64_t KEY_WHOLE_ROWS = 1;
constexpr uint64_t KEY_PARTS_OF_ROWS = 2;
constexpr size_t PARTIAL_BYTES = 32; // for each core, in the workspace

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const uint32_t coreNum = platform.GetCoreNumAiv();
    const gert::Shape& shape = context->GetInputShape(0)->GetStorageShape();
    if (shape.GetDimNum() == 0 || shape.GetShapeSize() == 0 || coreNum == 0) {
        return ge::GRAPH_FAILED;
    }
    const uint64_t columnNum = shape.GetDim(shape.GetDimNum() - 1);
    const uint32_t rowNum = shape.GetShapeSize() / columnNum;

    ReduceSumTilingData tiling;
    tiling.set_columnNum(columnNum);
    tiling.set_rowNum(rowNum);
    tiling.set_tileLength(TILE_LENGTH);
    if (rowNum >= coreNum || columnNum <= TILE_LENGTH) {
        // Whole rows for each core.
        const uint32_t blockDim = rowNum < coreNum ? rowNum : coreNum;
        tiling.set_partNum(1);
        tiling.set_partLength(columnNum);
        context->SetBlockDim(blockDim);
        context->SetTilingKey(KEY_WHOLE_ROWS);
    } else {
        // Few long rows: each is cut into parts, which become one number each in the workspace.
        const uint64_t tileNum = (columnNum + TILE_LENGTH - 1) / TILE_LENGTH;
        const uint64_t most = coreNum / rowNum;
        const uint64_t partTiles = (tileNum + most - 1) / most;
        const uint32_t partNum = (tileNum + partTiles - 1) / partTiles;
        tiling.set_partNum(partNum);
        tiling.set_partLength(partTiles * TILE_LENGTH);
        context->SetBlockDim(rowNum * partNum);
        context->SetTilingKey(KEY_PARTS_OF_ROWS);
    }
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    size_t* workspaceSizes = context->GetWorkspaceSizes(1);
    workspaceSizes[0] = platform.GetLibApiWorkSpaceSize() + coreNum * PARTIAL_BYTES;
    return ge::GRAPH_SUCCESS;
}
} // namespace optiling

namespace ge {
static ge::graphStatus InferShape(gert::InferShapeContext* context)
{
    gert::Shape* shape = context->GetOutputShape(0);
    *shape = *context->GetInputShape(0);
    shape->SetDim(shape->GetDimNum() - 1, 1);
    return GRAPH_SUCCESS;
}

static ge::graphStatus InferDataType(gert::InferDataTypeContext* context)
{
    context->SetOutputDataType(0, ge::DT_FLOAT);
    return GRAPH_SUCCESS;
}
} // namespace ge

namespace ops {
class ReduceSum : public OpDef {
public:
    explicit ReduceSum(const char* name) : OpDef(name)
    {
        this->Input("x")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Output("y")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});

        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(ReduceSum);
} // namespace ops
