// Host side of Attention: tiling, shape inference and operator definition.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"
#include "tiling/tiling_api.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(AttentionTilingData)
TILING_DATA_FIELD_DEF(uint32_t, headNum);              // heads of all samples
TILING_DATA_FIELD_DEF(uint32_t, queryNum);             // queries of one head
TILING_DATA_FIELD_DEF(uint32_t, keyNum);               // keys of one head
TILING_DATA_FIELD_DEF(uint32_t, depth);                // elements of a query
TILING_DATA_FIELD_DEF(uint32_t, tileRows);             // queries of one tile
TILING_DATA_FIELD_DEF(uint32_t, coreNum);              // vector cores that take part
TILING_DATA_FIELD_DEF(float, scale);                   // factor of the scores
TILING_DATA_FIELD_DEF_STRUCT(TCubeTiling, scorePlan);  // of queries by keys
TILING_DATA_FIELD_DEF_STRUCT(TCubeTiling, outputPlan); // of probabilities by values
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(Attention, AttentionTilingData)

constexpr int32_t TILE_ROWS = 64;
constexpr int64_t MAX_KEYS = 4096;

// Plans one product on one core; b is transposed or not.
static bool Plan(const platform_ascendc::PlatformAscendC& platform, TCubeTiling& plan, int32_t m, int32_t n, int32_t k,
                 bool transposed)
{
    using matmul_tiling::CubeFormat;
    using matmul_tiling::TPosition;
    const auto result = transposed ? matmul_tiling::DataType::DT_FLOAT : matmul_tiling::DataType::DT_FLOAT16;
    matmul_tiling::MatmulApiTiling planner(platform);
    planner.SetAType(TPosition::GM, CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT16);
    planner.SetBType(TPosition::GM, CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT16, transposed);
    planner.SetCType(TPosition::GM, CubeFormat::ND, result);
    planner.SetShape(m, n, k);
    planner.SetOrgShape(m, n, k);
    planner.SetBias(false);
    planner.SetBufferSpace(-1, -1, -1);
    return planner.GetTiling(plan) != -1;
}

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const gert::Shape& shape = context->GetInputShape(0)->GetStorageShape();
    const gert::Shape& keyShape = context->GetInputShape(1)->GetStorageShape();
    const uint32_t coreNum = platform.GetCoreNumAiv();
    if (shape.GetDimNum() != 3 || shape.GetShapeSize() == 0 || keyShape.GetDim(1) > MAX_KEYS || coreNum == 0) {
        return ge::GRAPH_FAILED;
    }
    const int32_t queryNum = shape.GetDim(1), keyNum = keyShape.GetDim(1), depth = shape.GetDim(2);
    const uint32_t taskNum = shape.GetDim(0) * ((queryNum + TILE_ROWS - 1) / TILE_ROWS);
    const uint32_t usedNum = taskNum < coreNum ? taskNum : coreNum;

    AttentionTilingData tiling;
    if (!Plan(platform, tiling.scorePlan, TILE_ROWS, keyNum, depth, true) ||
        !Plan(platform, tiling.outputPlan, TILE_ROWS, depth, keyNum, false)) {
        return ge::GRAPH_FAILED;
    }
    tiling.set_headNum(shape.GetDim(0));
    tiling.set_queryNum(queryNum);
    tiling.set_keyNum(keyNum);
    tiling.set_depth(depth);
    tiling.set_tileRows(TILE_ROWS);
    tiling.set_coreNum(usedNum);
    tiling.set_scale(*context->GetAttrs()->GetAttrPointer<float>(0));
    context->SetBlockDim((usedNum + 1) / 2); // two vector cores to a cube core
    // Each core keeps the scores of its tile in float and their softmax in half.
    const size_t coreBytes = size_t(TILE_ROWS) * keyNum * (sizeof(float) + sizeof(uint16_t));
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    size_t* workspaceSizes = context->GetWorkspaceSizes(1);
    workspaceSizes[0] = platform.GetLibApiWorkSpaceSize() + usedNum * coreBytes;
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
class Attention : public OpDef {
public:
    explicit Attention(const char* name) : OpDef(name)
    {
        this->Input("q")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16})
            .Format({ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND});
        this->Input("k")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16})
            .Format({ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND});
        this->Input("v")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16})
            .Format({ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND});
        this->Output("y")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16})
            .Format({ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND});
        this->Attr("scale").AttrType(REQUIRED).Float();

        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(Attention);
} // namespace ops
