// Host side of MatMul: tiling, shape inference and operator definition.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"
#include "tiling/tiling_api.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(MatMulTilingData)
TILING_DATA_FIELD_DEF_STRUCT(TCubeTiling, plan); // of the product on one core
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(MatMul, MatMulTilingData)

constexpr int32_t BASE_M = 64;
constexpr int32_t BASE_N = 64;
constexpr int32_t BASE_K = 64;
constexpr int32_t BASE_K_8BIT = 128;

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const gert::Shape& aShape = context->GetInputShape(0)->GetStorageShape();
    const gert::Shape& bShape = context->GetInputShape(1)->GetStorageShape();
    if (aShape.GetDimNum() != 2 || bShape.GetDimNum() != 2 || aShape.GetDim(1) != bShape.GetDim(0)) {
        return ge::GRAPH_FAILED;
    }
    const int32_t m = aShape.GetDim(0), k = aShape.GetDim(1), n = bShape.GetDim(1);
    const bool whole = context->GetInputDesc(0)->GetDataType() == ge::DT_INT8;
    const auto source = static_cast<matmul_tiling::DataType>(context->GetInputDesc(0)->GetDataType());
    const auto result = static_cast<matmul_tiling::DataType>(context->GetOutputDesc(0)->GetDataType());

    MatMulTilingData tiling;
    matmul_tiling::MultiCoreMatmulTiling planner(platform);
    planner.SetDim(platform.GetCoreNumAic());
    planner.SetAType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, source);
    planner.SetBType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, source);
    planner.SetCType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, result);
    planner.SetShape(m, n, k);
    planner.SetOrgShape(m, n, k);
    planner.SetFixSplit(BASE_M, BASE_N, whole ? BASE_K_8BIT : BASE_K);
    planner.SetBias(false);
    planner.SetBufferSpace(-1, -1, -1);
    if (planner.GetTiling(tiling.plan) == -1) {
        return ge::GRAPH_FAILED;
    }
    int32_t coreNum = 0, mParts = 0, nParts = 0;
    planner.GetCoreNum(coreNum, mParts, nParts);
    context->SetBlockDim(coreNum);
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    size_t* workspaceSizes = context->GetWorkspaceSizes(1);
    workspaceSizes[0] = platform.GetLibApiWorkSpaceSize();
    return ge::GRAPH_SUCCESS;
}
} // namespace optiling

namespace ge {
static ge::graphStatus InferShape(gert::InferShapeContext* context)
{
    gert::Shape* shape = context->GetOutputShape(0);
    *shape = *context->GetInputShape(0);
    shape->SetDim(1, context->GetInputShape(1)->GetDim(1));
    return GRAPH_SUCCESS;
}

static ge::graphStatus InferDataType(gert::InferDataTypeContext* context)
{
    const ge::DataType type = context->GetInputDataType(0);
    const bool half = type == ge::DT_FLOAT16, whole = type == ge::DT_INT8;
    context->SetOutputDataType(0, half ? ge::DT_FLOAT16 : (whole ? ge::DT_INT32 : ge::DT_FLOAT));
    return GRAPH_SUCCESS;
}
} // namespace ge

namespace ops {
class MatMul : public OpDef {
public:
    explicit MatMul(const char* name) : OpDef(name)
    {
        this->Input("a")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_BF16, ge::DT_INT8})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
        this->Input("b")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_BF16, ge::DT_INT8})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
        this->Output("c")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_INT32})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});

        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(MatMul);
} // namespace ops
