// Host side of MatmulLeaky: the product is cut over the vector cores, two of which share a cube core.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/tiling_api.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(MatmulLeakyTilingData)
TILING_DATA_FIELD_DEF(float, slope);
TILING_DATA_FIELD_DEF_STRUCT(TCubeTiling, matmul);
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(MatmulLeaky, MatmulLeakyTilingData)

constexpr int32_t VECTOR_CORES = 8;
constexpr int32_t BASE_M = 64;
constexpr int32_t BASE_N = 128;

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    using namespace matmul_tiling;
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const auto& a = context->GetInputShape(0)->GetStorageShape();
    const auto& b = context->GetInputShape(1)->GetStorageShape();
    const int32_t m = a.GetDim(0), k = a.GetDim(1), n = b.GetDim(1);
    MultiCoreMatmulTiling planner(platform);
    planner.SetDim(VECTOR_CORES);
    planner.SetAType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT16);
    planner.SetBType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT16);
    planner.SetCType(TPosition::VECIN, CubeFormat::ND, DataType::DT_FLOAT);
    planner.SetBiasType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT);
    planner.SetShape(m, n, k);
    planner.SetOrgShape(m, n, k);
    planner.SetFixSplit(BASE_M, BASE_N, -1);
    planner.SetBias(true);
    planner.SetBufferSpace(-1, -1, -1);
    MatmulLeakyTilingData tiling;
    if (planner.GetTiling(tiling.matmul) == -1) {
        return ge::GRAPH_FAILED;
    }
    tiling.set_slope(0.125f);
    int32_t cores = 0, mParts = 0, nParts = 0;
    planner.GetCoreNum(cores, mParts, nParts);
    context->SetBlockDim((cores + 1) / 2);
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    context->GetWorkspaceSizes(1)[0] = platform.GetLibApiWorkSpaceSize();
    return ge::GRAPH_SUCCESS;
}
} // namespace optiling

namespace ge {
static ge::graphStatus InferShape(gert::InferShapeContext* context)
{
    *context->GetOutputShape(0) = *context->GetInputShape(0);
    return GRAPH_SUCCESS;
}
} // namespace ge

namespace ops {
class MatmulLeaky : public OpDef {
public:
    explicit MatmulLeaky(const char* name) : OpDef(name)
    {
        this->Input("a").ParamType(REQUIRED).DataType({ge::DT_FLOAT16}).Format({ge::FORMAT_ND});
        this->Input("b").ParamType(REQUIRED).DataType({ge::DT_FLOAT16}).Format({ge::FORMAT_ND});
        this->Input("bias").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("c").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->SetInferShape(ge::InferShape);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(MatmulLeaky);
} // namespace ops
