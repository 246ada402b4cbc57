// What the kernels with Matmul objects have in common.
#pragma once
#include "cube_probe.h"
#include "lib/matmul_intf.h"

using InGm = MatmulType<TPosition::GM, CubeFormat::ND, half>;
using InL1 = MatmulType<TPosition::TSCM, CubeFormat::NZ, half>;
using SumsInGm = MatmulType<TPosition::GM, CubeFormat::ND, float>;

// One base block, of matrices that are no larger.
__aicore__ inline TCubeTiling SquarePlan()
{
    TCubeTiling plan{};
    plan.usedCoreNum = 1;
    plan.M = plan.N = plan.Ka = plan.Kb = SIDE;
    plan.singleCoreM = plan.singleCoreN = plan.singleCoreK = SIDE;
    plan.baseM = plan.baseN = plan.baseK = SIDE;
    plan.stepM = plan.stepN = plan.stepKa = plan.stepKb = 1;
    plan.depthA1 = plan.depthB1 = 1;
    plan.dbL0A = plan.dbL0B = 2;
    plan.dbL0C = 1;
    return plan;
}

// A matrix of half from the input, a place for one in L1 and one for a product in the workspace.
struct MatmulProbe {
    __aicore__ inline explicit MatmulProbe(Probe& probe) : plan(SquarePlan())
    {
        input.SetGlobalBuffer((__gm__ half*)probe.allX.GetPhyAddr(), 2 * SHARE * BLOCKS);
        product = probe.scratch[probe.block * SQUARE];
        probe.pipe.InitBuffer(buffer, SQUARE * sizeof(half));
        inL1 = buffer.Get<half>();
    }

    // A matrix times itself: copies of the library's own, which are in order, are only made for one in global memory.
    template <typename Place, typename Tensor>
    __aicore__ inline void Square(Tensor matrix)
    {
        MatmulImpl<Place, Place, SumsInGm> object;
        object.Init(&plan);
        object.SetTensorA(matrix);
        object.SetTensorB(matrix);
        object.IterateAll(product);
        object.End();
    }

    TCubeTiling plan;
    TBuf<TPosition::TSCM> buffer;
    LocalTensor<half> inL1;
    GlobalTensor<half> input;
    GlobalTensor<float> product;
};
