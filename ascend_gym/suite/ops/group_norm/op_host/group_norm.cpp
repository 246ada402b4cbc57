// Host side of GroupNorm: tiling, shape inference and operator definition.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(GroupNormTilingData)
TILING_DATA_FIELD_DEF(uint32_t, groupNum);      // groups of one sample
TILING_DATA_FIELD_DEF(uint32_t, groupChannels); // channels of one group
TILING_DATA_FIELD_DEF(uint32_t, channelLength); // elements of one channel
TILING_DATA_FIELD_DEF(uint32_t, smallCoreRows); // groups of a small core
TILING_DATA_FIELD_DEF(uint32_t, bigCoreNum);    // cores that take one group more, which come first
TILING_DATA_FIELD_DEF(uint32_t, tileLength);    // elements of one tile
TILING_DATA_FIELD_DEF(float, epsilon);          // added to the variance
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(GroupNorm, GroupNormTilingData)

constexpr uint32_t TILE_LENGTH = 4096;

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const uint32_t coreNum = platform.GetCoreNumAiv();
    const gert::Shape& shape = context->GetInputShape(0)->GetStorageShape();
    const int64_t groupNum = *context->GetAttrs()->GetAttrPointer<int64_t>(0);
    if (shape.GetDimNum() != 3 || shape.GetShapeSize() == 0 || coreNum == 0 || groupNum <= 0 ||
        shape.GetDim(1) % groupNum != 0) {
        return ge::GRAPH_FAILED;
    }
    const uint32_t totalGroups = shape.GetDim(0) * groupNum;
    const uint32_t blockDim = totalGroups < coreNum ? totalGroups : coreNum;

    GroupNormTilingData tiling;
    tiling.set_groupNum(groupNum);
    tiling.set_groupChannels(shape.GetDim(1) / groupNum);
    tiling.set_channelLength(shape.GetDim(2));
    tiling.set_smallCoreRows(totalGroups / blockDim);
    tiling.set_bigCoreNum(totalGroups % blockDim);
    tiling.set_tileLength(TILE_LENGTH);
    tiling.set_epsilon(*context->GetAttrs()->GetAttrPointer<float>(1));
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
class GroupNorm : public OpDef {
public:
    explicit GroupNorm(const char* name) : OpDef(name)
    {
        this->Input("x")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Input("gamma")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Input("beta")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Output("y")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Attr("groups").AttrType(REQUIRED).Int();
        this->Attr("epsilon").AttrType(OPTIONAL).Float(1e-5);

        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(GroupNorm);
} // namespace ops
