// Host side of Columns: a fixed number of cores, and tiles of rows.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(ColumnsTilingData)
TILING_DATA_FIELD_DEF(uint32_t, rowNum);     // rows of the whole matrix
TILING_DATA_FIELD_DEF(uint32_t, coreRowNum); // rows of one core, a multiple of a tile
TILING_DATA_FIELD_DEF(uint32_t, pitch);      // elements of one row
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(Columns, ColumnsTilingData)

constexpr uint32_t BLOCK_DIM = 8;
constexpr uint32_t TILE_ROWS = 11; // as in the kernel

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    const gert::Shape& shape = context->GetInputShape(0)->GetStorageShape();
    const uint32_t rowNum = shape.GetDim(0);
    const uint32_t tiles = (rowNum + TILE_ROWS - 1) / TILE_ROWS;
    const uint32_t coreRowNum = (tiles + BLOCK_DIM - 1) / BLOCK_DIM * TILE_ROWS;

    ColumnsTilingData tiling;
    tiling.set_rowNum(rowNum);
    tiling.set_coreRowNum(coreRowNum);
    tiling.set_pitch(shape.GetDim(1));
    context->SetBlockDim(BLOCK_DIM);
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
    context->GetOutputShape(0)->SetDim(1, 64);
    return GRAPH_SUCCESS;
}
} // namespace ge

namespace ops {
class Columns : public OpDef {
public:
    explicit Columns(const char* name) : OpDef(name)
    {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->SetInferShape(ge::InferShape);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(Columns);
} // namespace ops
