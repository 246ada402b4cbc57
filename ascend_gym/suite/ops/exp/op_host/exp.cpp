// Host side of Exp: tiling, shape inference and operator definition.
#include <algorithm>

#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(ExpTilingData)
TILING_DATA_FIELD_DEF(uint64_t, totalLength); // elements of the whole tensor
TILING_DATA_FIELD_DEF(uint64_t, coreLength);  // elements of one core
TILING_DATA_FIELD_DEF(uint32_t, tileLength);  // elements of one tile
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(Exp, ExpTilingData)

constexpr uint32_t TILE_LENGTH = 1024;
constexpr uint32_t BLOCK_DIM = 20;
constexpr uint64_t ALIGN_ELEMS = 32; // 32 bytes even for one-byte elements

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const uint32_t coreNum = std::min(BLOCK_DIM, platform.GetCoreNumAiv());
    const uint64_t totalLength = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
    if (totalLength == 0 || coreNum == 0) {
        return ge::GRAPH_FAILED;
    }

    // Every core takes the same share, rounded up so that it starts on a 32-byte boundary; the last one
    // takes what is left, and cores that would get nothing are not started.
    uint64_t coreLength = (totalLength + coreNum - 1) / coreNum;
    coreLength = (coreLength + ALIGN_ELEMS - 1) / ALIGN_ELEMS * ALIGN_ELEMS;
    const uint32_t blockDim = (totalLength + coreLength - 1) / coreLength;

    ExpTilingData tiling;
    tiling.set_totalLength(totalLength);
    tiling.set_coreLength(coreLength);
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
class Exp : public OpDef {
public:
    explicit Exp(const char* name) : OpDef(name)
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

OP_ADD(Exp);
} // namespace ops
