// Device side of ReduceMaxColumns: the largest element of each column. A core keeps the largest of its tile of columns so far, row by row.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 2;

template <typename T>
class KernelReduceMaxColumns {
public:
    __aicore__ inline KernelReduceMaxColumns() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const ReduceMaxColumnsTilingData& tiling)
    {
        const uint32_t tileLength = tiling.tileLength;
        this->rowNum = tiling.rowNum;
        this->columnNum = tiling.columnNum;
        this->tileLength = tileLength;
        xGm.SetGlobalBuffer((__gm__ T*)x);
        yGm.SetGlobalBuffer((__gm__ T*)y);
        pipe.InitBuffer(inQueueX, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueueY, 1, tileLength * sizeof(T));
    }

    __aicore__ inline void Process()
    {
        const uint32_t stride = AscendC::GetBlockNum() * this->tileLength;
        uint32_t column = AscendC::GetBlockIdx() * this->tileLength;
        for (; column < this->columnNum; column += stride) {
            const uint32_t rest = this->columnNum - column;
            ProcessTile(column, rest < this->tileLength ? rest : this->tileLength);
        }
    }

private:
    __aicore__ inline void ProcessTile(uint32_t column, uint32_t count)
    {
        AscendC::LocalTensor<T> yLocal = outQueueY.template AllocTensor<T>();
        CopyIn(column, count);
        AscendC::LocalTensor<T> xLocal = inQueueX.template DeQue<T>();
        AscendC::Max(yLocal, xLocal, xLocal, count);
        inQueueX.FreeTensor(xLocal);
        for (uint32_t row = 1; row < this->rowNum; row++) {
            CopyIn(static_cast<uint64_t>(row) * this->columnNum + column, count);
            xLocal = inQueueX.template DeQue<T>();
            AscendC::PipeBarrier<PIPE_V>();
            AscendC::Max(yLocal, yLocal, xLocal, count);
            inQueueX.FreeTensor(xLocal);
        }
        outQueueY.EnQue(yLocal);
        yLocal = outQueueY.template DeQue<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPad(yGm[column], yLocal, copyParams);
        outQueueY.FreeTensor(yLocal);
    }

    __aicore__ inline void CopyIn(uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> xLocal = inQueueX.template AllocTensor<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
        AscendC::DataCopyPad(xLocal, xGm[offset], copyParams, padParams);
        inQueueX.EnQue(xLocal);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueX;
    AscendC::TQue<AscendC::QuePosition::VECOUT, 1> outQueueY;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<T> yGm;
    uint32_t rowNum;
    uint32_t columnNum;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void reduce_max_columns(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelReduceMaxColumns<DTYPE_X> op;
    op.Init(x, y, tilingData);
    op.Process();
}
