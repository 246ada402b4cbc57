// Device side of VectorMotifs: a row at a time, and each step done in the way that some rule improves.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

class KernelVectorMotifs {
public:
    __aicore__ inline void Init(GM_ADDR x1, GM_ADDR x2, GM_ADDR y, uint32_t rowNum, uint32_t rowLength)
    {
        this->rowNum = rowNum;
        this->n = rowLength;
        const uint64_t begin = static_cast<uint64_t>(rowNum) * rowLength * AscendC::GetBlockIdx();
        x1Gm.SetGlobalBuffer((__gm__ float*)x1 + begin, rowNum * rowLength);
        x2Gm.SetGlobalBuffer((__gm__ float*)x2 + begin, rowNum * rowLength);
        yGm.SetGlobalBuffer((__gm__ float*)y + begin, rowNum * rowLength);
        pipe.InitBuffer(inQueueA, BUFFER_NUM, rowLength * sizeof(float));
        pipe.InitBuffer(inQueueB, BUFFER_NUM, rowLength * sizeof(float));
        pipe.InitBuffer(outQueue, 1, rowLength * sizeof(float));
        pipe.InitBuffer(spareBuf, rowLength * sizeof(float));
        pipe.InitBuffer(onesBuf, rowLength * sizeof(float));
        pipe.InitBuffer(halfBuf, rowLength * sizeof(float));
        pipe.InitBuffer(workBuf, rowLength * sizeof(float));
        pipe.InitBuffer(sumBuf, 32);
    }

    __aicore__ inline void Process()
    {
        for (uint32_t row = 0; row < this->rowNum; row++) {
            CopyIn(row);
            Compute();
            CopyOut(row);
        }
    }

private:
    __aicore__ inline void CopyIn(uint32_t row)
    {
        AscendC::LocalTensor<float> a = inQueueA.AllocTensor<float>();
        AscendC::LocalTensor<float> b = inQueueB.AllocTensor<float>();
        AscendC::DataCopy(a, x1Gm[row * this->n], this->n);
        AscendC::DataCopy(b, x2Gm[row * this->n], this->n);
        inQueueA.EnQue(a);
        inQueueB.EnQue(b);
    }

    __aicore__ inline void Compute()
    {
        AscendC::LocalTensor<float> y = outQueue.AllocTensor<float>();
        AscendC::LocalTensor<float> a = inQueueA.DeQue<float>();
        AscendC::LocalTensor<float> b = inQueueB.DeQue<float>();
        AscendC::LocalTensor<float> t = spareBuf.Get<float>();
        AscendC::LocalTensor<float> ones = onesBuf.Get<float>();
        AscendC::LocalTensor<float> half = halfBuf.Get<float>();
        AscendC::LocalTensor<float> work = workBuf.Get<float>();
        AscendC::LocalTensor<float> sum = sumBuf.Get<float>();

        AscendC::Muls(t, a, 1.0f, this->n);
        AscendC::PipeBarrier<PIPE_ALL>();
        AscendC::ReduceSum(sum, t, work, this->n);
        AscendC::SetFlag<AscendC::HardEvent::V_S>(EVENT_ID0);
        AscendC::WaitFlag<AscendC::HardEvent::V_S>(EVENT_ID0);
        AscendC::Adds(y, b, 0.0f, this->n);
        const float mean = sum.GetValue(0) / static_cast<float>(static_cast<int32_t>(this->n));

        AscendC::Muls(t, a, 2.0f, this->n);
        AscendC::Add(y, y, t, this->n);
        AscendC::Mul(t, a, b, this->n);
        AscendC::Add(y, y, t, this->n);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Mul(y, y, a, this->n);
        AscendC::Add(y, y, b, this->n);

        AscendC::Sqrt(t, b, this->n);
        AscendC::Reciprocal(t, t, this->n);
        AscendC::Add(y, y, t, this->n);
        AscendC::Duplicate(ones, 1.0f, this->n);
        AscendC::Div(t, ones, a, this->n);
        AscendC::Add(y, y, t, this->n);
        AscendC::Power(t, a, 2.0f, this->n);
        AscendC::Add(y, y, t, this->n);

        AscendC::Muls(y, y, 0.25f, this->n);
        AscendC::Muls(y, y, 0.5f, this->n);
        AscendC::Duplicate(ones, 3.0f, this->n);
        AscendC::Add(y, y, ones, this->n);
        AscendC::Adds(y, y, 0.0f, this->n);

        for (uint32_t piece = 0; piece < this->n; piece += 128) {
            AscendC::Muls(t[piece], b[piece], mean, this->n - piece < 128 ? this->n - piece : 128);
            AscendC::PipeBarrier<PIPE_V>();
        }
        AscendC::Add(y, y, t, this->n);
        AscendC::Relu(y, y, this->n);
        for (uint32_t i = 0; i < 2; i++) {
            AscendC::Duplicate(half, 0.25f, this->n);
            AscendC::Add(y, y, half, this->n);
        }
        outQueue.EnQue(y);
        inQueueA.FreeTensor(a);
        inQueueB.FreeTensor(b);
    }

    __aicore__ inline void CopyOut(uint32_t row)
    {
        AscendC::LocalTensor<float> y = outQueue.DeQue<float>();
        AscendC::DataCopy(yGm[row * this->n], y, this->n);
        outQueue.FreeTensor(y);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueA;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueB;
    AscendC::TQue<AscendC::QuePosition::VECOUT, 1> outQueue;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> spareBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> onesBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> halfBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> workBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> sumBuf;
    AscendC::GlobalTensor<float> x1Gm;
    AscendC::GlobalTensor<float> x2Gm;
    AscendC::GlobalTensor<float> yGm;
    uint32_t rowNum;
    uint32_t n;
};

extern "C" __global__ __aicore__ void vector_motifs(GM_ADDR x1, GM_ADDR x2, GM_ADDR y, GM_ADDR workspace,
                                                    GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelVectorMotifs op;
    op.Init(x1, x2, y, tilingData.rowNum, tilingData.rowLength);
    op.Process();
}
