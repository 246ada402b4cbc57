// Host side of AvgPool2d: tiling, shape inference and operator definition.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(AvgPool2dTilingData)
TILING_DATA_FIELD_DEF(int32_t, height);         // rows of the input
TILING_DATA_FIELD_DEF(int32_t, width);          // columns of the input
TILING_DATA_FIELD_DEF(uint32_t, channels);      // elements of one pixel
TILING_DATA_FIELD_DEF(uint32_t, pixelLength);   // the same with padding
TILING_DATA_FIELD_DEF(uint32_t, outHeight);     // rows of the output
TILING_DATA_FIELD_DEF(uint32_t, outWidth);      // columns of the output
TILING_DATA_FIELD_DEF(int32_t, window);         // rows and columns of a window
TILING_DATA_FIELD_DEF(int32_t, stride);         // from window to window
TILING_DATA_FIELD_DEF(uint32_t, smallCoreRows); // pixels of a small core
TILING_DATA_FIELD_DEF(uint32_t, bigCoreNum);    // cores that take one pixel more, which come first
END_TILING_DATA_DEF;

REGISTER_TILING_DATA_CLASS(AvgPool2d, AvgPool2dTilingData)

constexpr int64_t ALIGN_ELEMS = 16; // of two bytes: a block
constexpr int64_t MAX_ROW_LENGTH = 4096;

static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const uint32_t coreNum = platform.GetCoreNumAiv();
    const gert::Shape& shape = context->GetInputShape(0)->GetStorageShape();
    const gert::RuntimeAttrs* attrs = context->GetAttrs();
    const int64_t window = *attrs->GetAttrPointer<int64_t>(0), stride = *attrs->GetAttrPointer<int64_t>(1);
    if (shape.GetDimNum() != 4 || shape.GetShapeSize() == 0 || coreNum == 0 || window <= 0 || stride <= 0) {
        return ge::GRAPH_FAILED;
    }
    const int64_t outHeight = (shape.GetDim(1) - window) / stride + 1;
    const int64_t outWidth = (shape.GetDim(2) - window) / stride + 1;
    // A row of a window lies in UB as a whole, each pixel from a block of its own on.
    const int64_t pixelLength = (shape.GetDim(3) + ALIGN_ELEMS - 1) / ALIGN_ELEMS * ALIGN_ELEMS;
    if (outHeight <= 0 || outWidth <= 0 || window * pixelLength > MAX_ROW_LENGTH) {
        return ge::GRAPH_FAILED;
    }
    const uint32_t pixelNum = shape.GetDim(0) * outHeight * outWidth;
    const uint32_t blockDim = pixelNum < coreNum ? pixelNum : coreNum;

    AvgPool2dTilingData tiling;
    tiling.set_height(shape.GetDim(1));
    tiling.set_width(shape.GetDim(2));
    tiling.set_channels(shape.GetDim(3));
    tiling.set_pixelLength(pixelLength);
    tiling.set_outHeight(outHeight);
    tiling.set_outWidth(outWidth);
    tiling.set_window(window);
    tiling.set_stride(stride);
    tiling.set_smallCoreRows(pixelNum / blockDim);
    tiling.set_bigCoreNum(pixelNum % blockDim);
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
    const gert::RuntimeAttrs* attrs = context->GetAttrs();
    gert::Shape* shape = context->GetOutputShape(0);
    *shape = *context->GetInputShape(0);
    const int64_t window = *attrs->GetAttrPointer<int64_t>(0), stride = *attrs->GetAttrPointer<int64_t>(1);
    for (size_t axis = 1; axis <= 2; axis++) {
        shape->SetDim(axis, (shape->GetDim(axis) - window) / stride + 1);
    }
    return GRAPH_SUCCESS;
}

static ge::graphStatus InferDataType(gert::InferDataTypeContext* context)
{
    context->SetOutputDataType(0, context->GetInputDataType(0));
    return GRAPH_SUCCESS;
}
} // namespace ge

namespace ops {
class AvgPool2d : public OpDef {
public:
    explicit AvgPool2d(const char* name) : OpDef(name)
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
        this->Attr("window").AttrType(REQUIRED).Int();
        this->Attr("stride").AttrType(REQUIRED).Int();

        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
    }
};

OP_ADD(AvgPool2d);
} // namespace ops
