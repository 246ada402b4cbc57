// Device side of MatMul: c = a * b on the cube cores; each has a part of the rows and columns of c.
#define ASCENDC_CUBE_ONLY
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

template <typename T, typename U>
class KernelMatMul {
public:
    using Factor = AscendC::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, T>;
    using Product = AscendC::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, U>;

    __aicore__ inline KernelMatMul() {}

    __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR c, const TCubeTiling& plan)
    {
        const int32_t mParts = (plan.M + plan.singleCoreM - 1) / plan.singleCoreM;
        const int32_t row = AscendC::GetBlockIdx() % mParts * plan.singleCoreM;
        const int32_t column = AscendC::GetBlockIdx() / mParts * plan.singleCoreN;
        this->rowNum = Least(plan.singleCoreM, plan.M - row);
        this->columnNum = Least(plan.singleCoreN, plan.N - column);
        this->depth = plan.Ka;
        aGm.SetGlobalBuffer((__gm__ T*)a + static_cast<int64_t>(row) * plan.Ka);
        bGm.SetGlobalBuffer((__gm__ T*)b + column);
        cGm.SetGlobalBuffer((__gm__ U*)c + static_cast<int64_t>(row) * plan.N + column);
    }

    __aicore__ inline void Process()
    {
        if (this->rowNum <= 0 || this->columnNum <= 0) {
            return;
        }
        matmul.SetSingleShape(this->rowNum, this->columnNum, this->depth);
        matmul.SetTensorA(aGm);
        matmul.SetTensorB(bGm);
        matmul.IterateAll(cGm);
        matmul.End();
    }

    AscendC::Matmul<Factor, Factor, Product> matmul;

private:
    __aicore__ inline int32_t Least(int32_t x, int32_t y) { return x < y ? x : y; }

    AscendC::GlobalTensor<T> aGm;
    AscendC::GlobalTensor<T> bGm;
    AscendC::GlobalTensor<U> cGm;
    int32_t rowNum;
    int32_t columnNum;
    int32_t depth;
};

extern "C" __global__ __aicore__ void mat_mul(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR workspace, GM_ADDR tiling)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    GET_TILING_DATA(tilingData, tiling);
    AscendC::TPipe pipe;
    KernelMatMul<DTYPE_A, DTYPE_C> op;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), op.matmul, &tilingData.plan);
    op.Init(a, b, c, tilingData.plan);
    op.Process();
}
