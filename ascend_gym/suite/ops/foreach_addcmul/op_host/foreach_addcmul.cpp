// Host side of ForeachAddcmul: tiling, shape inference and operator definition.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
constexpr uint32_t MAX_TENSOR_NUM = 64;

BEGIN_TILING_DATA_DEF(ForeachAddcmulTilingData)
TILING_DATA_FIELD_DEF(uint32_t, tensorNum);                     // tensors of each list
TILING_DATA_FIELD_DEF(uint32_t, tileLength);                    // elements of one tile
TILING_DATA_FIELD_DEF(float, value);                            // factor of the products
TILING_DATA_FIELD_DEF_ARR(uint64_t, MAX_TENSOR_NUM, lengths);   // elements of each tensor
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(ForeachAddcmul, ForeachAddcmulTilingData)

constexpr uint32_t TILE_LENGTH = 2048;

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const uint32_t coreNum = platform.GetCoreNumAiv();

    uint64_t lengths[MAX_TENSOR_NUM] = {0};
    uint32_t tensorNum = 0;
    uint64_t tileNum = 0;
    for (; context->GetDynamicInputTensor(0, tensorNum) != nullptr; tensorNum++) {
        if (tensorNum == MAX_TENSOR_NUM) {
            return ge::GRAPH_FAILED;
        }
        lengths[tensorNum] = context->GetDynamicInputTensor(0, tensorNum)->GetStorageShape().GetShapeSize();
        tileNum += (lengths[tensorNum] + TILE_LENGTH - 1) / TILE_LENGTH;
    }
    if (tileNum == 0 || coreNum == 0) {
        return ge::GRAPH_FAILED;
    }
    const uint32_t blockDim = tileNum < coreNum ? tileNum : coreNum;

    ForeachAddcmulTilingData tiling;
    tiling.set_tensorNum(tensorNum);
    tiling.set_tileLength(TILE_LENGTH);
    tiling.set_value(*context->GetAttrs()->GetAttrPointer<float>(0));
    tiling.set_lengths(lengths);
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
    const size_t tensorNum = context->GetComputeNodeInfo()->GetInputInstanceInfo(0)->GetInstanceNum();
    for (size_t i = 0; i < tensorNum; i++) {
        *context->GetOutputShape(i) = *context->GetDynamicInputShape(0, i);
    }
    return GRAPH_SUCCESS;
}

static ge::graphStatus InferDataType(gert::InferDataTypeContext* context)
{
    const size_t tensorNum = context->GetComputeNodeInfo()->GetInputInstanceInfo(0)->GetInstanceNum();
    for (size_t i = 0; i < tensorNum; i++) {
        context->SetOutputDataType(i, context->GetDynamicInputDataType(0, i));
    }
    return GRAPH_SUCCESS;
}
} // namespace ge

namespace ops {
class ForeachAddcmul : public OpDef {
public:
    explicit ForeachAddcmul(const char* name) : OpDef(name)
    {
        this->Input("x1")
            .ParamType(DYNAMIC)
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Input("x2")
            .ParamType(DYNAMIC)
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Input("x3")
            .ParamType(DYNAMIC)
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Output("y")
            .ParamType(DYNAMIC)
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Attr("value").AttrType(OPTIONAL).Float(1.0);

        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(ForeachAddcmul);
} // namespace ops
