// gert::TilingContext: what a tiling function is given and where it puts its decision.
#pragma once

#include "exe_graph/runtime/extended_kernel_context.h"

namespace gert {

class TilingContext : public ExtendedKernelContext {
 public:
    using ExtendedKernelContext::ExtendedKernelContext;

    // What the tiling parse function left behind, or nullptr when the operator has none.
    const void *GetCompileInfo() const { return call_.compile_info; }
    template <class T>
    const T *GetCompileInfo() const {
        return static_cast<const T *>(call_.compile_info);
    }
    fe::PlatFormInfos *GetPlatformInfo() const { return &call_.platform; }
    int32_t GetDeterministicLevel() const { return GetDeterministic(); }
    // Tensors of a case are whole: none is a view of another.
    bool InputIsView(size_t) const { return false; }
    const Shape *GetInputStride(size_t) const { return nullptr; }
    int32_t GetDeterministic() const { return call_.deterministic ? 1 : 0; }

    const StorageShape *GetInputShape(size_t index) const { return shape_of(GetInputTensor(index)); }
    const StorageShape *GetRequiredInputShape(size_t parameter) const { return GetDynamicInputShape(parameter, 0); }
    const StorageShape *GetOptionalInputShape(size_t parameter) const { return GetDynamicInputShape(parameter, 0); }
    const StorageShape *GetDynamicInputShape(size_t parameter, size_t relative) const {
        return shape_of(GetDynamicInputTensor(parameter, relative));
    }
    const StorageShape *GetOutputShape(size_t index) const { return shape_of(at(call_.outputs, index)); }

    ge::graphStatus SetTilingKey(uint64_t key) {
        call_.decision.tiling_key = key;
        return ge::GRAPH_SUCCESS;
    }
    uint64_t GetTilingKey() const { return call_.decision.tiling_key; }
    ge::graphStatus SetBlockDim(uint32_t blocks) {
        call_.decision.block_dim = blocks;
        call_.decision.block_dim_set = true;
        return ge::GRAPH_SUCCESS;
    }
    uint32_t GetBlockDim() const { return call_.decision.block_dim; }
    ge::graphStatus SetSimdNumBlocks(uint32_t blocks) { return SetBlockDim(blocks); }
    ge::graphStatus SetScheduleMode(uint32_t mode) {
        call_.decision.schedule_mode = mode;
        return ge::GRAPH_SUCCESS;
    }
    uint32_t GetScheduleMode() const { return call_.decision.schedule_mode; }
    ge::graphStatus SetNeedAtomic(bool atomic) {
        call_.decision.need_atomic = atomic;
        return ge::GRAPH_SUCCESS;
    }
    bool NeedAtomic() const { return call_.decision.need_atomic; }

    // Sizes in bytes of `count` workspaces, for the caller to fill; nullptr when `count` is too large.
    size_t *GetWorkspaceSizes(size_t count) {
        if (count > asim::host::kMaxWorkspaces) return nullptr;
        call_.decision.workspace_bytes.resize(count);
        return call_.decision.workspace_bytes.data();
    }
    // Bytes of UB that a kernel of threads wants; chips without threads have no use for it.
    ge::graphStatus SetLocalMemorySize(uint32_t) { return ge::GRAPH_SUCCESS; }
    size_t GetWorkspaceNum() const { return call_.decision.workspace_bytes.size(); }

    TilingData *GetRawTilingData() { return &call_.tiling_data; }
    // The tiling data seen as a plain structure T, or nullptr when it does not fit.
    template <class T>
    T *GetTilingData() {
        if (sizeof(T) > call_.tiling_data.GetCapacity()) return nullptr;
        call_.tiling_data.SetDataSize(sizeof(T));
        return static_cast<T *>(call_.tiling_data.GetData());
    }
};

}  // namespace gert
