// Device side of ScalarMotifs: y = 2 x + 0.5 + 3 i + x[0] + the sum of the first 16 of a row, element by element.
#include "kernel_operator.h"

class KernelScalarMotifs {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, uint32_t rowNum, uint32_t rowLength)
    {
        this->rowNum = rowNum;
        this->n = rowLength;
        const uint64_t begin = static_cast<uint64_t>(rowNum) * rowLength * AscendC::GetBlockIdx();
        xGm.SetGlobalBuffer((__gm__ float*)x + begin, rowNum * rowLength);
        yGm.SetGlobalBuffer((__gm__ float*)y + begin, rowNum * rowLength);
        pipe.InitBuffer(inQueue, 2, rowLength * sizeof(float));
        pipe.InitBuffer(outQueue, 1, rowLength * sizeof(float));
        pipe.InitBuffer(indexBuf, rowLength * sizeof(float));
        pipe.InitBuffer(biasBuf, rowLength * sizeof(float));
    }

    __aicore__ inline void Process()
    {
        for (uint32_t row = 0; row < this->rowNum - 1; row++) {
            CopyIn(row);
            Compute();
            CopyOut(row);
        }
        CopyIn(this->rowNum - 1);
        Compute();
        CopyOut(this->rowNum - 1);
    }

private:
    __aicore__ inline void CopyIn(uint32_t row)
    {
        AscendC::LocalTensor<float> x = inQueue.AllocTensor<float>();
        AscendC::DataCopy(x, xGm[row * this->n], this->n);
        inQueue.EnQue(x);
    }

    __aicore__ inline void Compute()
    {
        AscendC::LocalTensor<float> x = inQueue.DeQue<float>();
        AscendC::LocalTensor<float> y = outQueue.AllocTensor<float>();
        AscendC::LocalTensor<float> index = indexBuf.Get<float>();
        AscendC::LocalTensor<float> bias = biasBuf.Get<float>();
        float running = 0.0f;
        for (uint32_t i = 0; i < 16; i++) {
            running += x.GetValue(i);
        }
        for (uint32_t i = 0; i < this->n; i++) {
            bias.SetValue(i, 0.5f);
        }
        for (int32_t i = 0; i < this->n; i++) {
            index.SetValue(i, static_cast<float>(i));
        }
        for (uint32_t i = 0; i < this->n; i++) {
            y.SetValue(i, x.GetValue(i) * 2.0f);
        }
        AscendC::Muls(index, index, 3.0f, this->n);
        AscendC::Add(y, y, index, this->n);
        for (uint32_t piece = 0; piece < this->n; piece += 64) {
            const float first = x.GetValue(0);
            AscendC::Adds(bias[piece], bias[piece], first, 64);
        }
        AscendC::Adds(bias, bias, running, this->n);
        AscendC::Add(y, y, bias, this->n);
        outQueue.EnQue(y);
        inQueue.FreeTensor(x);
    }

    __aicore__ inline void CopyOut(uint32_t row)
    {
        AscendC::LocalTensor<float> y = outQueue.DeQue<float>();
        AscendC::DataCopy(yGm[row * this->n], y, this->n);
        outQueue.FreeTensor(y);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, 2> inQueue;
    AscendC::TQue<AscendC::QuePosition::VECOUT, 1> outQueue;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> indexBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> biasBuf;
    AscendC::GlobalTensor<float> xGm;
    AscendC::GlobalTensor<float> yGm;
    uint32_t rowNum;
    uint32_t n;
};

extern "C" __global__ __aicore__ void scalar_motifs(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelScalarMotifs op;
    op.Init(x, y, tilingData.rowNum, tilingData.rowLength);
    op.Process();
}
