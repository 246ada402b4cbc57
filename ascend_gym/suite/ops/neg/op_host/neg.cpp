// Host side of Neg: tiling, shape inference and operator definition.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(NegTilingData)
TILING_DATA_FIELD_DEF(uint64_t, totalLength);     // elements of the whole tensor
TILING_DATA_FIELD_DEF(uint64_t, smallCoreLength); // elements of a small core
TILING_DATA_FIELD_DEF(uint64_t, unitLength);      // elements that a big core takes beside them
TILING_DATA_FIELD_DEF(uint32_t, bigCoreNum);      // big cores, which come first
TILING_DATA_FIELD_DEF(uint32_t, tileLength);      // elements of one tile
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(Neg, NegTilingData)

constexpr uint32_t TILE_LENGTH = 4096;
constexpr uint64_t UNIT_ELEMS = 256;

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const uint32_t coreNum = platform.GetCoreNumAiv();
    const uint64_t totalLength = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
    if (totalLength == 0 || coreNum == 0) {
        return ge::GRAPH_FAILED;
    }

    // Units are dealt out evenly: the first bigCoreNum cores take one more than the others.
    const uint64_t unitNum = (totalLength + UNIT_ELEMS - 1) / UNIT_ELEMS;
    const uint32_t blockDim = unitNum < coreNum ? unitNum : coreNum;

    NegTilingData tiling;
    tiling.set_totalLength(totalLength);
    tiling.set_smallCoreLength(unitNum / blockDim * UNIT_ELEMS);
    tiling.set_unitLength(UNIT_ELEMS);
    tiling.set_bigCoreNum(unitNum % blockDim);
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
class Neg : public OpDef {
public:
    explicit Neg(const char* name) : OpDef(name)
    {
        this->Input("x")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_INT32, ge::DT_INT8})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
        this->Output("y")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_INT32, ge::DT_INT8})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});

        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(Neg);
} // namespace ops
