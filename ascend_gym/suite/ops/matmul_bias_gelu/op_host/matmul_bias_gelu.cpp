// Host side of MatmulBiasGelu: tiling, shape inference and operator definition.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"
#include "tiling/tiling_api.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(MatmulBiasGeluTilingData)
TILING_DATA_FIELD_DEF_STRUCT(TCubeTiling, plan); // of the product on one core
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(MatmulBiasGelu, MatmulBiasGeluTilingData)

constexpr int32_t BASE_M = 64;
constexpr int32_t BASE_N = 64;
constexpr int64_t ALIGN_COLUMNS = 16;

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const gert::Shape& aShape = context->GetInputShape(0)->GetStorageShape();
    const gert::Shape& bShape = context->GetInputShape(1)->GetStorageShape();
    if (aShape.GetDimNum() != 2 || bShape.GetDimNum() != 2 || aShape.GetDim(1) != bShape.GetDim(0) ||
        bShape.GetDim(1) % ALIGN_COLUMNS != 0) {
        return ge::GRAPH_FAILED;
    }
    const int32_t m = aShape.GetDim(0), k = aShape.GetDim(1), n = bShape.GetDim(1);

    MatmulBiasGeluTilingData tiling;
    matmul_tiling::MultiCoreMatmulTiling planner(platform);
    planner.SetDim(platform.GetCoreNumAiv());
    planner.SetAType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT16);
    planner.SetBType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT16);
    planner.SetCType(matmul_tiling::TPosition::VECIN, matmul_tiling::CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT);
    planner.SetBiasType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT);
    planner.SetShape(m, n, k);
    planner.SetOrgShape(m, n, k);
    planner.SetFixSplit(BASE_M, BASE_N, -1);
    planner.SetBias(true);
    planner.SetBufferSpace(-1, -1, -1);
    if (planner.GetTiling(tiling.plan) == -1) {
        return ge::GRAPH_FAILED;
    }
    int32_t coreNum = 0, mParts = 0, nParts = 0;
    planner.GetCoreNum(coreNum, mParts, nParts);
    context->SetBlockDim((coreNum + 1) / 2); // two vector cores to a cube core
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
    context->SetOutputDataType(0, context->GetInputDataType(0));
    return GRAPH_SUCCESS;
}
} // namespace ge

namespace ops {
class MatmulBiasGelu : public OpDef {
public:
    explicit MatmulBiasGelu(const char* name) : OpDef(name)
    {
        this->Input("a")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16})
            .Format({ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND});
        this->Input("b")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16})
            .Format({ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND});
        this->Input("bias")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT})
            .Format({ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND});
        this->Output("c")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16})
            .Format({ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND});

        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(MatmulBiasGelu);
} // namespace ops
