// Host side of Affine: tiles of fixed size on eight cores, and the template parameters that go with them.
#include "register/op_def_registry.h"
#include "../op_kernel/affine_tiling_key.h"

using namespace AffineKeys;

namespace optiling {
constexpr uint32_t BLOCK_DIM = 8;
constexpr uint32_t BUFFERS = 2;

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    const ge::DataType type = context->GetInputDesc(0)->GetDataType();
    const uint32_t tile = TILE_BYTES / ge::GetSizeByDataType(type);
    AffineTilingData* tiling = context->GetTilingData<AffineTilingData>();
    tiling->count = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
    const uint32_t tiles = (tiling->count + tile - 1) / tile;
    tiling->coreCount = (tiles + BLOCK_DIM - 1) / BLOCK_DIM * tile;
    const uint32_t shape = tiling->count % tile == 0 ? AFFINE_FLAT : AFFINE_TAIL;
    ASCENDC_TPL_SEL_PARAM(context, static_cast<uint32_t>(type), shape, BUFFERS, 1);
    context->SetBlockDim(BLOCK_DIM);
    context->GetWorkspaceSizes(1)[0] = 0;
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
class Affine : public OpDef {
public:
    explicit Affine(const char* name) : OpDef(name)
    {
        this->Input("x")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Output("y")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND});
        this->SetInferShape(ge::InferShape);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(Affine);
} // namespace ops
