// Host side of Softmax: tiling, shape inference and operator definition.
#include <algorithm>

#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(SoftmaxTilingData)
TILING_DATA_FIELD_DEF(uint32_t, rowNum);     // rows of the whole tensor
TILING_DATA_FIELD_DEF(uint32_t, coreRowNum); // rows of one core
TILING_DATA_FIELD_DEF(uint32_t, columnNum);  // elements of one row
TILING_DATA_FIELD_DEF(uint32_t, tileLength); // elements of one tile
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(Softmax, SoftmaxTilingData)

constexpr uint32_t TILE_LENGTH = 4096;
constexpr uint32_t BLOCK_DIM = 32;

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const uint32_t coreNum = std::min(BLOCK_DIM, platform.GetCoreNumAiv());
    const gert::Shape& shape = context->GetInputShape(0)->GetStorageShape();
    if (shape.GetDimNum() == 0 || shape.GetShapeSize() == 0 || coreNum == 0) {
        return ge::GRAPH_FAILED;
    }
    const uint32_t columnNum = shape.GetDim(shape.GetDimNum() - 1);
    const uint32_t rowNum = shape.GetShapeSize() / columnNum;
    const uint32_t coreRowNum = (rowNum + coreNum - 1) / coreNum;
    const uint32_t blockDim = (rowNum + coreRowNum - 1) / coreRowNum;

    SoftmaxTilingData tiling;
    tiling.set_rowNum(rowNum);
    tiling.set_coreRowNum(coreRowNum);
    tiling.set_columnNum(columnNum);
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
class Softmax : public OpDef {
public:
    explicit Softmax(const char* name) : OpDef(name)
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

        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(Softmax);
} // namespace ops
