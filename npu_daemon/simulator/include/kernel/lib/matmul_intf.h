// The Matmul object, as the kernel that includes this means it: in pure cube kernels, which define ASCENDC_CUBE_ONLY before, it
// runs on the cube core that calls it, else on behalf of vector cores.
#pragma once
#include "kernel_operator.h"
#include "asim/api/matmul.h"

namespace AscendC {

// Whole-number helper that comes with this header; the divisor is positive.
template <class Left, class Right>
__aicore__ inline auto CeilAlign(Left value, Right alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

template <class A, class B, class C, class Bias = C, const auto &configuration = CFG_NORM,
          class CallBack = MatmulCallBackFunc<nullptr, nullptr, nullptr>,
          template <const auto &, typename...> class Policy = Impl::Detail::MatmulPolicy>
#ifdef ASCENDC_CUBE_ONLY
using Matmul = MatmulObject<A, B, C, Bias, configuration, CallBack, false, Policy<configuration>::kKeepsLeft>;
#else
using Matmul = MatmulObject<A, B, C, Bias, configuration, CallBack, true, Policy<configuration>::kKeepsLeft>;
#endif

}  // namespace AscendC

#ifdef ASCENDC_CUBE_ONLY
#define REGIST_MATMUL_OBJ(pipe, workspace, ...) AscendC::init_matmul_objects(pipe, __VA_ARGS__)
#else
// A cube core that works for vector cores has nothing else to do: it ends when they have.
#define REGIST_MATMUL_OBJ(pipe, workspace, ...)          \
    if (AscendC::served_vector_cores()) return;          \
    AscendC::init_matmul_objects(pipe, __VA_ARGS__)
#endif
#define REGIST_MATMUL_OBJ_STATIC REGIST_MATMUL_OBJ
