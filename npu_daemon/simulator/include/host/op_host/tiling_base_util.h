// Questions that tiling functions of several chips ask about this one.
#pragma once
#include "platform/soc_spec.h"
#include "register/op_impl_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace Ops {
namespace Base {

// Whether the chip computes on vector registers, as the 950 does.
template <class Context>
bool IsRegbaseSocVersion(const Context *context) {
    const NpuArch arch = platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetCurNpuArch();
    return arch == NpuArch::DAV_3510 || arch == NpuArch::DAV_5102;
}

// A shape, or [1] in place of that of a scalar.
inline const gert::Shape &EnsureNotScalar(const gert::Shape &shape) {
    static const gert::Shape one = {1};
    return shape.IsScalar() ? one : shape;
}

}  // namespace Base
}  // namespace Ops
