// The steps of a tiling program as a class: a derived one answers each, and DoTiling takes them in order.
#pragma once
#include <memory>
#include <sstream>
#include <string>

#include "log/log.h"
#include "platform/soc_spec.h"
#include "tiling/platform/platform_ascendc.h"

#define ASCENDC_EXTERN_C

namespace Ops {
namespace Base {

struct AiCoreParams {
    uint64_t ubSize = 0;
    uint64_t numBlocks = 0;
    uint64_t aicNum = 0;
    uint64_t l1Size = 0;
    uint64_t l0aSize = 0;
    uint64_t l0bSize = 0;
    uint64_t l0cSize = 0;
};

struct CompileInfoCommon {
    uint32_t aivNum;
    uint32_t aicNum;
    uint64_t ubSize;
    uint64_t l1Size;
    uint64_t l0aSize;
    uint64_t l0bSize;
    uint64_t l0cSize;
    uint64_t l2CacheSize;
    int64_t coreNum;
    int32_t socVersion;
    uint32_t rsvd;
};

class TilingBaseClass {
 public:
    explicit TilingBaseClass(gert::TilingContext *context) : context_(context) {}
    virtual ~TilingBaseClass() = default;

    // GRAPH_PARAM_INVALID says that this template does not serve the call, so that the next one is asked.
    ge::graphStatus DoTiling() {
        if (ge::graphStatus status = GetShapeAttrsInfo(); status != ge::GRAPH_SUCCESS) return status;
        if (ge::graphStatus status = GetPlatformInfo(); status != ge::GRAPH_SUCCESS) return status;
        if (!IsCapable()) return ge::GRAPH_PARAM_INVALID;
        if (ge::graphStatus status = DoOpTiling(); status != ge::GRAPH_SUCCESS) return status;
        if (ge::graphStatus status = DoLibApiTiling(); status != ge::GRAPH_SUCCESS) return status;
        if (ge::graphStatus status = GetWorkspaceSize(); status != ge::GRAPH_SUCCESS) return status;
        if (ge::graphStatus status = PostTiling(); status != ge::GRAPH_SUCCESS) return status;
        context_->SetTilingKey(GetTilingKey());
        return ge::GRAPH_SUCCESS;
    }
    virtual void Reset(gert::TilingContext *context) { context_ = context; }

 protected:
    virtual bool IsCapable() = 0;
    virtual ge::graphStatus GetPlatformInfo() = 0;
    virtual ge::graphStatus GetShapeAttrsInfo() = 0;
    virtual ge::graphStatus DoOpTiling() = 0;
    virtual ge::graphStatus DoLibApiTiling() = 0;
    [[nodiscard]] virtual uint64_t GetTilingKey() const = 0;
    virtual ge::graphStatus GetWorkspaceSize() = 0;
    virtual ge::graphStatus PostTiling() = 0;
    virtual void DumpTilingInfo() {}

    static uint32_t CalcTschBlockDim(uint32_t slices, uint32_t cube_cores, uint32_t vector_cores) {
        if (cube_cores == 0 || vector_cores == 0 || cube_cores > vector_cores) return slices;
        const uint32_t ratio = vector_cores / cube_cores;
        return (slices + ratio - 1) / ratio;
    }
    template <class Shape>
    [[nodiscard]] std::string GetShapeDebugStr(const Shape &shape) const {
        return ToString(shape);
    }
    [[nodiscard]] std::string GetTensorDebugStr(const gert::StorageShape *shape, const gert::CompileTimeTensorDesc *tensor) {
        if (shape == nullptr || tensor == nullptr) return "nil";
        return ToString(tensor->GetDataType()) + ToString(shape->GetStorageShape());
    }
    [[nodiscard]] std::string GetTilingContextDebugStr() { return context_->GetNodeName(); }
    [[nodiscard]] std::string GetTilingDataDebugStr() const { return "tiling data"; }

    gert::TilingContext *context_ = nullptr;
    std::unique_ptr<platform_ascendc::PlatformAscendC> ascendcPlatform_{nullptr};
    uint32_t blockDim_{0};
    uint64_t workspaceSize_{0};
    uint64_t tilingKey_{0};
    AiCoreParams aicoreParams_;
};

}  // namespace Base
}  // namespace Ops
