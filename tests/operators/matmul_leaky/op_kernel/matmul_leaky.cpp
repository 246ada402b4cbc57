// MatmulLeaky: each vector core takes blocks of its part of the product as the cube core computes them.
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

class KernelMatmulLeaky {
public:
    using Input = MatmulType<TPosition::GM, CubeFormat::ND, half>;
    using Vectors = MatmulType<TPosition::GM, CubeFormat::ND, float>;
    using Block = MatmulType<TPosition::VECIN, CubeFormat::ND, float>;

    __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, const TCubeTiling &plan, float slope, TPipe *pipe)
    {
        this->plan = plan;
        this->slope = slope;
        int32_t mParts = (plan.M + plan.singleCoreM - 1) / plan.singleCoreM;
        int32_t m = GetBlockIdx() % mParts * plan.singleCoreM;
        int32_t n = GetBlockIdx() / mParts * plan.singleCoreN;
        this->rows = m < plan.M ? Least(plan.singleCoreM, plan.M - m) : 0;
        this->columns = n < plan.N ? Least(plan.singleCoreN, plan.N - n) : 0;
        aGm.SetGlobalBuffer((__gm__ half *)a + m * plan.Ka);
        bGm.SetGlobalBuffer((__gm__ half *)b + n);
        biasGm.SetGlobalBuffer((__gm__ float *)bias + n);
        cGm.SetGlobalBuffer((__gm__ float *)c + m * plan.N + n);
        pipe->InitBuffer(blocks, 2, plan.baseM * plan.baseN * sizeof(float));
    }

    __aicore__ inline void Process()
    {
        if (rows == 0 || columns == 0) {
            return;
        }
        matmul.SetSingleShape(rows, columns, plan.Ka);
        matmul.SetTensorA(aGm);
        matmul.SetTensorB(bGm);
        matmul.SetBias(biasGm);
        for (int32_t block = 0; matmul.Iterate<true>(); block++) {
            Compute(block);
        }
        matmul.End();
    }

    Matmul<Input, Input, Block, Vectors> matmul;

private:
    __aicore__ inline int32_t Least(int32_t x, int32_t y) { return x < y ? x : y; }

    __aicore__ inline void Compute(int32_t block)
    {
        int32_t mBlocks = (rows + plan.baseM - 1) / plan.baseM;
        int32_t m = block % mBlocks * plan.baseM, n = block / mBlocks * plan.baseN;
        int32_t height = Least(plan.baseM, rows - m), width = Least(plan.baseN, columns - n);
        LocalTensor<float> local = blocks.AllocTensor<float>();
        matmul.GetTensorC<true>(local, false, true);
        LeakyRelu(local, local, slope, height * width);
        blocks.EnQue(local);
        local = blocks.DeQue<float>();
        DataCopyExtParams copy{(uint16_t)height, (uint32_t)(width * sizeof(float)), 0, (uint32_t)((plan.N - width) * sizeof(float)), 0};
        DataCopyPad(cGm[m * plan.N + n], local, copy);
        blocks.FreeTensor(local);
    }

    TQue<TPosition::VECOUT, 2> blocks;
    GlobalTensor<half> aGm, bGm;
    GlobalTensor<float> biasGm, cGm;
    TCubeTiling plan;
    float slope;
    int32_t rows;
    int32_t columns;
};

extern "C" __global__ __aicore__ void matmul_leaky(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(data, tiling);
    KernelMatmulLeaky op;
    TPipe pipe;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), op.matmul, &data.matmul);
    op.Init(a, b, bias, c, data.matmul, data.slope, &pipe);
    op.Process();
}
