// Registration of the functions of an operator by its type: tiling, tiling parse, inference.
#pragma once

#include <initializer_list>

#include "asim/host/registry.h"
#include "exe_graph/runtime/infer_datatype_context.h"
#include "exe_graph/runtime/infer_shape_context.h"
#include "exe_graph/runtime/infer_shape_range_context.h"
#include "exe_graph/runtime/tiling_context.h"
#include "exe_graph/runtime/tiling_parse_context.h"

namespace gert {

class OpImplRegisterV2 {
 public:
    using TilingKernelFunc = asim::host::TilingFunction;
    using InferShapeKernelFunc = asim::host::InferShapeFunction;
    using InferShapeRangeKernelFunc = uint32_t (*)(InferShapeRangeContext *);
    using InferDataTypeKernelFunc = uint32_t (*)(InferDataTypeContext *);
    using TilingParseFunc = uint32_t (*)(TilingParseContext *);

    explicit OpImplRegisterV2(const char *op_type);

    OpImplRegisterV2 &Tiling(TilingKernelFunc function);
    // The size of the tiling data is known from its structure.
    OpImplRegisterV2 &Tiling(TilingKernelFunc function, size_t) { return Tiling(function); }
    // The parse function fills one CompileInfo, which tiling functions read through GetCompileInfo().
    template <class CompileInfo>
    OpImplRegisterV2 &TilingParse(TilingParseFunc function) {
        return parse_with(function, {[]() -> void * { return new CompileInfo(); },
                                     [](void *info) { delete static_cast<CompileInfo *>(info); }});
    }
    OpImplRegisterV2 &InputsDataDependency(std::initializer_list<int32_t> inputs) {
        return TilingInputsDataDependency(inputs);
    }
    OpImplRegisterV2 &TilingInputsDataDependency(std::initializer_list<int32_t> inputs);

    // Says the shapes of outputs to an import; a tiling run is given those of its case.
    OpImplRegisterV2 &InferShape(InferShapeKernelFunc function);
    // Ranges and types belong to graph building: these are never called.
    OpImplRegisterV2 &InferShapeRange(InferShapeRangeKernelFunc) { return *this; }
    OpImplRegisterV2 &InferDataType(InferDataTypeKernelFunc) { return *this; }
    OpImplRegisterV2 &OutputShapeDependOnCompute(std::initializer_list<int32_t>) { return *this; }
    // Keys of kernels that were compiled ahead of time: a kernel here is built for its case.
    template <class Function>
    OpImplRegisterV2 &GenSimplifiedKey(Function) {
        return *this;
    }
    template <class... Default>
    OpImplRegisterV2 &PrivateAttr(const char *, Default...) {
        return *this;
    }

 private:
    OpImplRegisterV2 &parse_with(TilingParseFunc function, asim::host::CompileInfoType type);

    asim::host::Implementation *implementation_;
};

}  // namespace gert

#define ASIM_JOIN_EXPANDED(left, right) left##right
#define ASIM_JOIN(left, right) ASIM_JOIN_EXPANDED(left, right)
#define IMPL_OP(op_type)                                                                             \
    [[maybe_unused]] static ::gert::OpImplRegisterV2 ASIM_JOIN(g_implementation_##op_type##_, __COUNTER__) = \
        ::gert::OpImplRegisterV2(#op_type)
#define IMPL_OP_OPTILING(op_type) IMPL_OP(op_type)
#define IMPL_OP_INFERSHAPE(op_type) IMPL_OP(op_type)
