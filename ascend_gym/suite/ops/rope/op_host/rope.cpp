// Host side of Rope: tiling, shape inference and operator definition.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(RopeTilingData)
TILING_DATA_FIELD_DEF(uint32_t, sequenceLength); // tokens of one sequence
TILING_DATA_FIELD_DEF(uint32_t, headNum);        // heads of one token
TILING_DATA_FIELD_DEF(uint32_t, headLength);     // elements of one head
TILING_DATA_FIELD_DEF(uint32_t, smallCoreRows);  // tokens of a small core
TILING_DATA_FIELD_DEF(uint32_t, bigCoreNum);     // cores that take one token more, which come first
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(Rope, RopeTilingData)

constexpr uint32_t HALF_ALIGN_ELEMS = 16; // so that half a head begins on a block of floats
constexpr uint32_t MAX_TOKEN_ELEMS = 8192;

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const uint32_t coreNum = platform.GetCoreNumAiv();
    const gert::Shape& shape = context->GetInputShape(0)->GetStorageShape();
    if (shape.GetDimNum() != 4 || shape.GetShapeSize() == 0 || coreNum == 0) {
        return ge::GRAPH_FAILED;
    }
    const uint32_t headNum = shape.GetDim(2), headLength = shape.GetDim(3);
    if (headLength % HALF_ALIGN_ELEMS != 0 || headNum * headLength > MAX_TOKEN_ELEMS) {
        return ge::GRAPH_FAILED;
    }
    const uint32_t tokenNum = shape.GetDim(0) * shape.GetDim(1);
    const uint32_t blockDim = tokenNum < coreNum ? tokenNum : coreNum;

    RopeTilingData tiling;
    tiling.set_sequenceLength(shape.GetDim(1));
    tiling.set_headNum(headNum);
    tiling.set_headLength(headLength);
    tiling.set_smallCoreRows(tokenNum / blockDim);
    tiling.set_bigCoreNum(tokenNum % blockDim);
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
class Rope : public OpDef {
public:
    explicit Rope(const char* name) : OpDef(name)
    {
        this->Input("x")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_BF16})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Input("cos")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Input("sin")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Output("y")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_BF16})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});

        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(Rope);
} // namespace ops
