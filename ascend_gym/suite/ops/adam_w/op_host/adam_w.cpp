// Host side of AdamW: tiling, shape inference and operator definition.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(AdamWTilingData)
TILING_DATA_FIELD_DEF(uint64_t, totalLength);     // elements of the whole tensor
TILING_DATA_FIELD_DEF(uint64_t, smallCoreLength); // elements of a small core
TILING_DATA_FIELD_DEF(uint64_t, unitLength);      // elements that a big core takes beside them
TILING_DATA_FIELD_DEF(uint32_t, bigCoreNum);      // big cores, which come first
TILING_DATA_FIELD_DEF(uint32_t, tileLength);      // elements of one tile
TILING_DATA_FIELD_DEF(float, lr);                 // learning rate
TILING_DATA_FIELD_DEF(float, beta1);              // decay of the mean
TILING_DATA_FIELD_DEF(float, beta2);              // decay of the mean square
TILING_DATA_FIELD_DEF(float, epsilon);            // added to the root
TILING_DATA_FIELD_DEF(float, weightDecay);        // share of a weight that a step takes off
TILING_DATA_FIELD_DEF(int32_t, step);             // number of the step, from 1
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(AdamW, AdamWTilingData)

constexpr uint32_t TILE_LENGTH = 1024;
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

    AdamWTilingData tiling;
    tiling.set_totalLength(totalLength);
    tiling.set_smallCoreLength(unitNum / blockDim * UNIT_ELEMS);
    tiling.set_unitLength(UNIT_ELEMS);
    tiling.set_bigCoreNum(unitNum % blockDim);
    tiling.set_tileLength(TILE_LENGTH);
    tiling.set_lr(*context->GetAttrs()->GetAttrPointer<float>(0));
    tiling.set_beta1(*context->GetAttrs()->GetAttrPointer<float>(1));
    tiling.set_beta2(*context->GetAttrs()->GetAttrPointer<float>(2));
    tiling.set_epsilon(*context->GetAttrs()->GetAttrPointer<float>(3));
    tiling.set_weightDecay(*context->GetAttrs()->GetAttrPointer<float>(4));
    tiling.set_step(*context->GetAttrs()->GetAttrPointer<int64_t>(5));
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
    *context->GetOutputShape(1) = *context->GetInputShape(0);
    *context->GetOutputShape(2) = *context->GetInputShape(0);
    return GRAPH_SUCCESS;
}

static ge::graphStatus InferDataType(gert::InferDataTypeContext* context)
{
    context->SetOutputDataType(0, context->GetInputDataType(0));
    context->SetOutputDataType(1, context->GetInputDataType(0));
    context->SetOutputDataType(2, context->GetInputDataType(0));
    return GRAPH_SUCCESS;
}
} // namespace ge

namespace ops {
class AdamW : public OpDef {
public:
    explicit AdamW(const char* name) : OpDef(name)
    {
        this->Input("var")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT})
            .Format({ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND});
        this->Input("m")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT})
            .Format({ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND});
        this->Input("v")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT})
            .Format({ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND});
        this->Input("grad")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT})
            .Format({ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND});
        this->Output("var_out")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT})
            .Format({ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND});
        this->Output("m_out")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT})
            .Format({ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND});
        this->Output("v_out")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT})
            .Format({ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND});
        this->Attr("lr").AttrType(OPTIONAL).Float(0.001);
        this->Attr("beta1").AttrType(OPTIONAL).Float(0.9);
        this->Attr("beta2").AttrType(OPTIONAL).Float(0.999);
        this->Attr("epsilon").AttrType(OPTIONAL).Float(1e-8);
        this->Attr("weight_decay").AttrType(OPTIONAL).Float(0.01);
        this->Attr("step").AttrType(OPTIONAL).Int(1);

        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(AdamW);
} // namespace ops
