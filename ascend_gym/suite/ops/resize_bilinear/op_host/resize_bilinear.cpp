// Host side of ResizeBilinear: tiling, shape inference and operator definition.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(ResizeBilinearTilingData)
TILING_DATA_FIELD_DEF(uint32_t, height);        // rows of the input
TILING_DATA_FIELD_DEF(uint32_t, width);         // columns of the input
TILING_DATA_FIELD_DEF(uint32_t, channels);      // elements of one pixel
TILING_DATA_FIELD_DEF(uint32_t, pixelLength);   // the same with padding
TILING_DATA_FIELD_DEF(uint32_t, outHeight);     // rows of the output
TILING_DATA_FIELD_DEF(uint32_t, outWidth);      // columns of the output
TILING_DATA_FIELD_DEF(uint32_t, smallCoreRows); // rows of the output of a small core
TILING_DATA_FIELD_DEF(uint32_t, bigCoreNum);    // cores that take one row more, which come first
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(ResizeBilinear, ResizeBilinearTilingData)

constexpr int64_t ALIGN_ELEMS = 16; // of two bytes: a block
constexpr int64_t MAX_LINE_LENGTH = 8192; // of the input; two lines lie in UB
constexpr int64_t MAX_PIXEL_LENGTH = 1024;

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const uint32_t coreNum = platform.GetCoreNumAiv();
    const gert::Shape& shape = context->GetInputShape(0)->GetStorageShape();
    const int64_t outHeight = *context->GetAttrs()->GetAttrPointer<int64_t>(0);
    const int64_t outWidth = *context->GetAttrs()->GetAttrPointer<int64_t>(1);
    if (shape.GetDimNum() != 4 || shape.GetShapeSize() == 0 || coreNum == 0 || outHeight <= 0 || outWidth <= 0) {
        return ge::GRAPH_FAILED;
    }
    const int64_t pixelLength = (shape.GetDim(3) + ALIGN_ELEMS - 1) / ALIGN_ELEMS * ALIGN_ELEMS;
    if (pixelLength > MAX_PIXEL_LENGTH || shape.GetDim(2) * pixelLength > MAX_LINE_LENGTH) {
        return ge::GRAPH_FAILED;
    }
    const uint32_t rowNum = shape.GetDim(0) * outHeight;
    const uint32_t blockDim = rowNum < coreNum ? rowNum : coreNum;

    ResizeBilinearTilingData tiling;
    tiling.set_height(shape.GetDim(1));
    tiling.set_width(shape.GetDim(2));
    tiling.set_channels(shape.GetDim(3));
    tiling.set_pixelLength(pixelLength);
    tiling.set_outHeight(outHeight);
    tiling.set_outWidth(outWidth);
    tiling.set_smallCoreRows(rowNum / blockDim);
    tiling.set_bigCoreNum(rowNum % blockDim);
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
    gert::Shape* shape = context->GetOutputShape(0);
    *shape = *context->GetInputShape(0);
    shape->SetDim(1, *context->GetAttrs()->GetAttrPointer<int64_t>(0));
    shape->SetDim(2, *context->GetAttrs()->GetAttrPointer<int64_t>(1));
    return GRAPH_SUCCESS;
}

static ge::graphStatus InferDataType(gert::InferDataTypeContext* context)
{
    context->SetOutputDataType(0, context->GetInputDataType(0));
    return GRAPH_SUCCESS;
}
} // namespace ge

namespace ops {
class ResizeBilinear : public OpDef {
public:
    explicit ResizeBilinear(const char* name) : OpDef(name)
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
        this->Attr("height").AttrType(REQUIRED).Int();
        this->Attr("width").AttrType(REQUIRED).Int();

        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(ResizeBilinear);
} // namespace ops
