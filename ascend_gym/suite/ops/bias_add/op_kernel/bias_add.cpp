// Device side of BiasAdd: y[i, :] = x[i, :] + bias. A core goes through its rows once for each tile of columns, for which it keeps
// the bias.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

template <typename T>
class KernelBiasAdd {
public:
    __aicore__ inline KernelBiasAdd() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR bias, GM_ADDR y, const BiasAddTilingData& tiling)
    {
        const uint32_t tileLength = tiling.tileLength;
        const uint32_t block = AscendC::GetBlockIdx();
        const uint32_t bigBefore = block < tiling.bigCoreNum ? block : tiling.bigCoreNum;
        this->firstRow = block * tiling.smallCoreRows + bigBefore;
        this->rowNum = tiling.smallCoreRows + (block < tiling.bigCoreNum ? 1 : 0);
        this->columnNum = tiling.columnNum;
        this->tileLength = tileLength;
        xGm.SetGlobalBuffer((__gm__ T*)x);
        biasGm.SetGlobalBuffer((__gm__ T*)bias);
        yGm.SetGlobalBuffer((__gm__ T*)y);
        pipe.InitBuffer(inQueueX, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(inQueueBias, 1, tileLength * sizeof(T));
        pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(T));
    }

    __aicore__ inline void Process()
    {
        for (uint32_t column = 0; column < this->columnNum; column += this->tileLength) {
            const uint32_t rest = this->columnNum - column;
            const uint32_t count = rest < this->tileLength ? rest : this->tileLength;
            CopyIn(inQueueBias, biasGm, column, count);
            AscendC::LocalTensor<T> biasLocal = inQueueBias.template DeQue<T>();
            for (uint32_t row = 0; row < this->rowNum; row++) {
                const uint64_t offset = static_cast<uint64_t>(this->firstRow + row) * this->columnNum + column;
                CopyIn(inQueueX, xGm, offset, count);
                Compute(biasLocal, count);
                CopyOut(offset, count);
            }
            inQueueBias.FreeTensor(biasLocal);
        }
    }

private:
    template <typename Queue>
    __aicore__ inline void CopyIn(Queue& queue, const AscendC::GlobalTensor<T>& source, uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> local = queue.template AllocTensor<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
        AscendC::DataCopyPad(local, source[offset], copyParams, padParams);
        queue.EnQue(local);
    }

    __aicore__ inline void Compute(const AscendC::LocalTensor<T>& biasLocal, uint32_t count)
    {
        AscendC::LocalTensor<T> xLocal = inQueueX.template DeQue<T>();
        AscendC::LocalTensor<T> yLocal = outQueueY.template AllocTensor<T>();
        AscendC::Add(yLocal, xLocal, biasLocal, count);
        outQueueY.EnQue(yLocal);
        inQueueX.FreeTensor(xLocal);
    }

    __aicore__ inline void CopyOut(uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> yLocal = outQueueY.template DeQue<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPad(yGm[offset], yLocal, copyParams);
        outQueueY.FreeTensor(yLocal);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueX;
    AscendC::TQue<AscendC::QuePosition::VECIN, 1> inQueueBias;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueY;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<T> biasGm;
    AscendC::GlobalTensor<T> yGm;
    uint32_t firstRow;
    uint32_t rowNum;
    uint32_t columnNum;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void bias_add(GM_ADDR x, GM_ADDR bias, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelBiasAdd<DTYPE_X> op;
    op.Init(x, bias, y, tilingData);
    op.Process();
}
