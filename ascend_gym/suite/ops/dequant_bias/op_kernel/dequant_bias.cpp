// Device side of DequantBias: y = x * scale + bias, where x are 32-bit sums of a quantised product and scale and bias belong to columns.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

template <typename T>
class KernelDequantBias {
public:
    __aicore__ inline KernelDequantBias() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR scale, GM_ADDR bias, GM_ADDR y, const DequantBiasTilingData& tiling)
    {
        const uint32_t tileLength = tiling.tileLength;
        const uint32_t block = AscendC::GetBlockIdx();
        const uint32_t bigBefore = block < tiling.bigCoreNum ? block : tiling.bigCoreNum;
        this->firstRow = block * tiling.smallCoreRows + bigBefore;
        this->rowNum = tiling.smallCoreRows + (block < tiling.bigCoreNum ? 1 : 0);
        this->columnNum = tiling.columnNum;
        this->tileLength = tileLength;
        xGm.SetGlobalBuffer((__gm__ int32_t*)x);
        scaleGm.SetGlobalBuffer((__gm__ float*)scale);
        biasGm.SetGlobalBuffer((__gm__ float*)bias);
        yGm.SetGlobalBuffer((__gm__ T*)y);
        pipe.InitBuffer(inQueueX, BUFFER_NUM, tileLength * sizeof(int32_t));
        pipe.InitBuffer(inQueueColumns, 2, tileLength * sizeof(float));
        pipe.InitBuffer(outQueue, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(valueBuf, tileLength * sizeof(float));
    }

    __aicore__ inline void Process()
    {
        for (uint32_t column = 0; column < this->columnNum; column += this->tileLength) {
            const uint32_t rest = this->columnNum - column;
            const uint32_t count = rest < this->tileLength ? rest : this->tileLength;
            CopyIn(inQueueColumns, scaleGm, column, count);
            CopyIn(inQueueColumns, biasGm, column, count);
            AscendC::LocalTensor<float> scale = inQueueColumns.DeQue<float>();
            AscendC::LocalTensor<float> bias = inQueueColumns.DeQue<float>();
            for (uint32_t row = this->firstRow; row < this->firstRow + this->rowNum; row++) {
                const uint64_t offset = static_cast<uint64_t>(row) * this->columnNum + column;
                CopyIn(inQueueX, xGm, offset, count);
                Compute(scale, bias, count);
                Store(yGm, offset, valueBuf.Get<float>(), count);
            }
            inQueueColumns.FreeTensor(scale);
            inQueueColumns.FreeTensor(bias);
        }
    }

private:
    template <typename Queue, typename U>
    __aicore__ inline void CopyIn(Queue& queue, const AscendC::GlobalTensor<U>& source, uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<U> local = queue.template AllocTensor<U>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(U)), 0, 0, 0};
        AscendC::DataCopyPadExtParams<U> padParams{false, 0, 0, 0};
        AscendC::DataCopyPad(local, source[offset], copyParams, padParams);
        queue.EnQue(local);
    }

    __aicore__ inline void Compute(const AscendC::LocalTensor<float>& scale, const AscendC::LocalTensor<float>& bias,
                                   uint32_t count)
    {
        AscendC::LocalTensor<int32_t> xLocal = inQueueX.template DeQue<int32_t>();
        AscendC::LocalTensor<float> value = valueBuf.Get<float>();
        AscendC::Cast(value, xLocal, AscendC::RoundMode::CAST_RINT, count);
        AscendC::PipeBarrier<PIPE_V>();
        inQueueX.FreeTensor(xLocal);
        AscendC::Mul(value, value, scale, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Add(value, value, bias, count);
        AscendC::PipeBarrier<PIPE_V>();
    }

    __aicore__ inline void Store(const AscendC::GlobalTensor<T>& target, uint64_t offset,
                                 const AscendC::LocalTensor<float>& value, uint32_t count)
    {
        AscendC::LocalTensor<T> local = outQueue.template AllocTensor<T>();
        AscendC::Cast(local, value, AscendC::RoundMode::CAST_RINT, count);
        outQueue.EnQue(local);
        local = outQueue.template DeQue<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPad(target[offset], local, copyParams);
        outQueue.FreeTensor(local);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueX;
    AscendC::TQue<AscendC::QuePosition::VECIN, 2> inQueueColumns;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueue;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> valueBuf;
    AscendC::GlobalTensor<int32_t> xGm;
    AscendC::GlobalTensor<float> scaleGm;
    AscendC::GlobalTensor<float> biasGm;
    AscendC::GlobalTensor<T> yGm;
    uint32_t firstRow;
    uint32_t rowNum;
    uint32_t columnNum;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void dequant_bias(GM_ADDR x, GM_ADDR scale, GM_ADDR bias, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelDequantBias<DTYPE_Y> op;
    op.Init(x, scale, bias, y, tilingData);
    op.Process();
}
