// gert::TilingParseContext: what runs once per operator, before tiling, to keep facts about the chip.
#pragma once

#include "exe_graph/runtime/extended_kernel_context.h"

namespace gert {

class TilingParseContext : public ExtendedKernelContext {
 public:
    using ExtendedKernelContext::ExtendedKernelContext;

    fe::PlatFormInfos *GetPlatformInfo() const { return &call_.platform; }
    template <class T>
    T *GetCompiledInfo() const {
        return static_cast<T *>(call_.compile_info);
    }
    // Description made when a kernel is compiled ahead of time; Ascend C kernels have an empty one.
    const char *GetCompiledJson() const { return "{}"; }
};

}  // namespace gert
