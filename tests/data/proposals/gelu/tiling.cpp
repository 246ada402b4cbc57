// Host side of Gelu: tiling, shape inference and operator definition.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(GeluTilingData)
TILING_DATA_FIELD_DEF(uint64_t, totalLength); // elements of the whole tensor
TILING_DATA_FIELD_DEF(uint64_t, coreLength);  // elements of one core
TILING_DATA_FIELD_DEF(uint32_t, tileLength);  // elements of one tile
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(Gelu, GeluTilingData)

constexpr uint32_t TILE_LENGTH = 8192;
// Elements for which the square of the number of cores pays: a core costs as much to start as it then saves.
constexpr uint64_t ELEMS_PER_SQUARED_CORE = 2600;
constexpr uint64_t ALIGN_ELEMS = 256; // lines of 512 bytes

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    uint32_t coreNum = platform.GetCoreNumAiv();
    const uint64_t totalLength = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
    if (totalLength == 0 || coreNum == 0) {
        return ge::GRAPH_FAILED;
    }
    while (coreNum > 1 && static_cast<uint64_t>(coreNum) * coreNum * ELEMS_PER_SQUARED_CORE > totalLength) {
        coreNum--;
    }

    // Every core takes the same share, rounded up so that it starts on a 32-byte boundary; the last one
    // takes what is left, and cores that would get nothing are not started.
    uint64_t coreLength = (totalLength + coreNum - 1) / coreNum;
    coreLength = (coreLength + ALIGN_ELEMS - 1) / ALIGN_ELEMS * ALIGN_ELEMS;
    const uint32_t blockDim = (totalLength + coreLength - 1) / coreLength;

    GeluTilingData tiling;
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
class Gelu : public OpDef {
public:
    explicit Gelu(const char* name) : OpDef(name)
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

OP_ADD(Gelu);
} // namespace ops
