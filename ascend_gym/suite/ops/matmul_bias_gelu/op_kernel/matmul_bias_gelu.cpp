// Device side of MatmulBiasGelu: c = gelu(a * b + bias) with gelu in its tanh form. The cube cores multiply; each
// vector core takes the blocks of its part of the product as they come, in float.
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

constexpr int32_t BUFFER_NUM = 1;

constexpr float CUBIC_FACTOR = 0.044715f;
constexpr float MINUS_TWO_SQRT_TWO_OVER_PI = -1.5957691216057308f;

class KernelMatmulBiasGelu {
public:
    using Factor = AscendC::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, half>;
    using Bias = AscendC::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, float>;
    using Block = AscendC::MatmulType<AscendC::TPosition::VECIN, CubeFormat::ND, float>;

    __aicore__ inline KernelMatmulBiasGelu() {}

    __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, const TCubeTiling& plan,
                                AscendC::TPipe* pipe)
    {
        const int32_t mParts = (plan.M + plan.singleCoreM - 1) / plan.singleCoreM;
        const int32_t row = AscendC::GetBlockIdx() % mParts * plan.singleCoreM;
        const int32_t column = AscendC::GetBlockIdx() / mParts * plan.singleCoreN;
        this->plan = plan;
        this->rowNum = Least(plan.singleCoreM, plan.M - row);
        this->columnNum = Least(plan.singleCoreN, plan.N - column);
        aGm.SetGlobalBuffer((__gm__ half*)a + static_cast<int64_t>(row) * plan.Ka);
        bGm.SetGlobalBuffer((__gm__ half*)b + column);
        biasGm.SetGlobalBuffer((__gm__ float*)bias + column);
        cGm.SetGlobalBuffer((__gm__ half*)c + static_cast<int64_t>(row) * plan.N + column);
        const uint32_t tileLength = plan.baseM * plan.baseN;
        pipe->InitBuffer(inQueueBlock, BUFFER_NUM, tileLength * sizeof(float));
        pipe->InitBuffer(outQueueC, BUFFER_NUM, tileLength * sizeof(half));
        pipe->InitBuffer(innerBuf, tileLength * sizeof(float));
    }

    __aicore__ inline void Process()
    {
        if (this->rowNum <= 0 || this->columnNum <= 0) {
            return;
        }
        matmul.SetSingleShape(this->rowNum, this->columnNum, this->plan.Ka);
        matmul.SetTensorA(aGm);
        matmul.SetTensorB(bGm);
        matmul.SetBias(biasGm);
        const int32_t mBlocks = (this->rowNum + this->plan.baseM - 1) / this->plan.baseM;
        for (int32_t block = 0; matmul.Iterate<true>(); block++) {
            const int32_t row = block % mBlocks * this->plan.baseM;
            const int32_t column = block / mBlocks * this->plan.baseN;
            const int32_t rows = Least(this->plan.baseM, this->rowNum - row);
            const int32_t columns = Least(this->plan.baseN, this->columnNum - column);
            CopyIn();
            Compute(rows * columns);
            CopyOut(static_cast<int64_t>(row) * this->plan.N + column, rows, columns);
        }
        matmul.End();
    }

    AscendC::Matmul<Factor, Factor, Block, Bias> matmul;

private:
    __aicore__ inline int32_t Least(int32_t x, int32_t y) { return x < y ? x : y; }

    __aicore__ inline void CopyIn()
    {
        AscendC::LocalTensor<float> block = inQueueBlock.AllocTensor<float>();
        matmul.GetTensorC<true>(block, false, true);
        inQueueBlock.EnQue(block);
    }

    // gelu(x) = x / (1 + exp(-2u)) with u = sqrt(2 / pi) * (x + 0.044715 * x^3)
    __aicore__ inline void Compute(uint32_t count)
    {
        AscendC::LocalTensor<float> x = inQueueBlock.DeQue<float>();
        AscendC::LocalTensor<float> inner = innerBuf.Get<float>();
        AscendC::LocalTensor<half> cLocal = outQueueC.AllocTensor<half>();
        AscendC::Mul(inner, x, x, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Muls(inner, inner, CUBIC_FACTOR, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Adds(inner, inner, 1.0f, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Mul(inner, inner, x, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Muls(inner, inner, MINUS_TWO_SQRT_TWO_OVER_PI, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Exp(inner, inner, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Adds(inner, inner, 1.0f, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Div(inner, x, inner, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Cast(cLocal, inner, AscendC::RoundMode::CAST_RINT, count);
        outQueueC.EnQue(cLocal);
        inQueueBlock.FreeTensor(x);
    }

    __aicore__ inline void CopyOut(int64_t offset, int32_t rows, int32_t columns)
    {
        AscendC::LocalTensor<half> cLocal = outQueueC.DeQue<half>();
        const uint32_t gapBytes = (this->plan.N - columns) * sizeof(half);
        AscendC::DataCopyExtParams copyParams{static_cast<uint16_t>(rows),
                                              static_cast<uint32_t>(columns * sizeof(half)), 0, gapBytes, 0};
        AscendC::DataCopyPad(cGm[offset], cLocal, copyParams);
        outQueueC.FreeTensor(cLocal);
    }

    AscendC::TQue<AscendC::TPosition::VECIN, BUFFER_NUM> inQueueBlock;
    AscendC::TQue<AscendC::TPosition::VECOUT, BUFFER_NUM> outQueueC;
    AscendC::TBuf<AscendC::TPosition::VECCALC> innerBuf;
    AscendC::GlobalTensor<half> aGm;
    AscendC::GlobalTensor<half> bGm;
    AscendC::GlobalTensor<float> biasGm;
    AscendC::GlobalTensor<half> cGm;
    TCubeTiling plan;
    int32_t rowNum;
    int32_t columnNum;
};

extern "C" __global__ __aicore__ void matmul_bias_gelu(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, GM_ADDR workspace,
                                                       GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    AscendC::TPipe pipe;
    KernelMatmulBiasGelu op;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), op.matmul, &tilingData.plan);
    op.Init(a, b, bias, c, tilingData.plan, &pipe);
    op.Process();
}
