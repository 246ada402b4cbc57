// Sizes that kernels of the operator libraries ask for, in bytes.
#pragma once
#include "kernel_operator.h"

namespace Ops {
namespace Base {

__aicore__ inline constexpr uint32_t GetUbBlockSize() { return 32; }
__aicore__ inline constexpr uint32_t GetVRegSize() { return 256; }

}  // namespace Base
}  // namespace Ops
