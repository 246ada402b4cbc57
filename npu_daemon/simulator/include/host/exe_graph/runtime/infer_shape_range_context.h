// gert::InferShapeRangeContext: bounds of unknown shapes. The simulator plans for known shapes only.
#pragma once

#include "asim/host/fault.h"
#include "exe_graph/runtime/extended_kernel_context.h"
#include "exe_graph/runtime/range.h"

namespace gert {

class InferShapeRangeContext : public ExtendedKernelContext {
 public:
    using ExtendedKernelContext::ExtendedKernelContext;

    const Range<Shape> *GetInputShapeRange(size_t) const { throw asim::host::UnsupportedFault(kReason); }
    const Range<Shape> *GetOptionalInputShapeRange(size_t) const { throw asim::host::UnsupportedFault(kReason); }
    Range<Shape> *GetOutputShapeRange(size_t) const { throw asim::host::UnsupportedFault(kReason); }

 private:
    static constexpr const char *kReason = "shape ranges are not inferred: the shapes of a case are known";
};

}  // namespace gert
