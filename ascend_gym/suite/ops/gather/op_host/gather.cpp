// Host side of Gather: tiling, shape inference and operator definition.
#include <algorithm>

#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(GatherTilingData)
TILING_DATA_FIELD_DEF(uint32_t, indexNum);     // rows to gather
TILING_DATA_FIELD_DEF(uint32_t, coreIndexNum); // rows to gather on one core
TILING_DATA_FIELD_DEF(uint32_t, indexTile);    // indices fetched at a time
TILING_DATA_FIELD_DEF(uint32_t, columnNum);    // elements of one row
TILING_DATA_FIELD_DEF(uint32_t, tileLength);   // elements of a row moved at a time
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(Gather, GatherTilingData)

constexpr uint32_t TILE_LENGTH = 512;
constexpr uint32_t INDEX_TILE = 64;
constexpr uint32_t BLOCK_DIM = 24;

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const uint32_t coreNum = std::min(BLOCK_DIM, platform.GetCoreNumAiv());
    const gert::Shape& xShape = context->GetInputShape(0)->GetStorageShape();
    const uint32_t indexNum = context->GetInputShape(1)->GetStorageShape().GetShapeSize();
    if (xShape.GetDimNum() != 2 || xShape.GetShapeSize() == 0 || indexNum == 0 || coreNum == 0) {
        return ge::GRAPH_FAILED;
    }
    const uint32_t coreIndexNum = (indexNum + coreNum - 1) / coreNum;
    const uint32_t blockDim = (indexNum + coreIndexNum - 1) / coreIndexNum;

    GatherTilingData tiling;
    tiling.set_indexNum(indexNum);
    tiling.set_coreIndexNum(coreIndexNum);
    tiling.set_indexTile(INDEX_TILE);
    tiling.set_columnNum(xShape.GetDim(1));
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
    gert::Shape* yShape = context->GetOutputShape(0);
    *yShape = *context->GetInputShape(0);
    yShape->SetDim(0, context->GetInputShape(1)->GetShapeSize());
    return GRAPH_SUCCESS;
}

static ge::graphStatus InferDataType(gert::InferDataTypeContext* context)
{
    context->SetOutputDataType(0, context->GetInputDataType(0));
    return GRAPH_SUCCESS;
}
} // namespace ge

namespace ops {
class Gather : public OpDef {
public:
    explicit Gather(const char* name) : OpDef(name)
    {
        this->Input("x")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Input("index")
            .ParamType(REQUIRED)
            .DataType({ge::DT_INT32, ge::DT_INT32})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Output("y")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});

        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(Gather);
} // namespace ops
