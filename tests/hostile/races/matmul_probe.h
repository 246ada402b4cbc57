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

    // Ones in the matrix in L1, so that every element of its square is `SIDE`.
    __aicore__ inline void MakeOnes()
    {
        InitConstValue(inL1, {1, SQUARE * sizeof(half) / 32, 0, (half)1.0f});
        Settle();
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

// What vector cores do where their cube cores have made such a square: their share adds nothing to a right one.
__aicore__ inline void ShareAfterOnes(Probe& probe)
{
    if ASCEND_IS_AIC {
        CrossCoreSetFlag<2, PIPE_FIX>(0);
    }
    if ASCEND_IS_AIV {
        CrossCoreWaitFlag(0);
        probe.InitBuffers();
        PlainShare(probe);
        const float error = probe.scratch[probe.block * SQUARE].GetValue(0) - SIDE;
        if (!(error == 0.0f)) {
            Settle();
            Duplicate(probe.a, error, TILE);
            Settle();
            DataCopy(probe.y, probe.a, TILE);
        }
    }
}
