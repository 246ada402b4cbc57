// Device side of CumSum: sums along the first axis up to each row: y[i] = x[0] + ... + x[i]. Half is summed in float.
// Key 1: each core has its own columns. Key 2: each core has its own rows; it begins with the sum of all before them.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

template <typename T>
class KernelCumSum {
public:
    __aicore__ inline KernelCumSum() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, const CumSumTilingData& tiling)
    {
        const uint32_t tileLength = tiling.tileLength;
        this->rowNum = tiling.rowNum;
        this->columnNum = tiling.columnNum;
        this->tileLength = tileLength;
        this->partRows = tiling.partRows;
        xGm.SetGlobalBuffer((__gm__ T*)x);
        yGm.SetGlobalBuffer((__gm__ T*)y);
        partialGm.SetGlobalBuffer((__gm__ Sum*)AscendC::GetUserWorkspace(workspace));
        pipe.InitBuffer(inQueueX, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(partialQueue, BUFFER_NUM, tileLength * sizeof(Sum));
        pipe.InitBuffer(sumBuf, tileLength * sizeof(Sum));
        pipe.InitBuffer(xBuf, tileLength * sizeof(Sum));
    }

    __aicore__ inline void ProcessColumns()
    {
        const uint32_t stride = AscendC::GetBlockNum() * this->tileLength;
        uint32_t column = AscendC::GetBlockIdx() * this->tileLength;
        for (; column < this->columnNum; column += stride) {
            const uint32_t rest = this->columnNum - column;
            const uint32_t count = rest < this->tileLength ? rest : this->tileLength;
            AscendC::Duplicate(sumBuf.Get<Sum>(), static_cast<Sum>(0), count);
            AscendC::PipeBarrier<PIPE_V>();
            for (uint32_t row = 0; row < this->rowNum; row++) {
                const uint64_t offset = static_cast<uint64_t>(row) * this->columnNum + column;
                AddRow(offset, count);
                StoreSum(offset, count);
            }
        }
    }

    __aicore__ inline void ProcessRows()
    {
        const uint32_t block = AscendC::GetBlockIdx();
        const uint32_t first = block * this->partRows;
        const uint32_t rest = this->rowNum - first;
        const uint32_t last = first + (rest < this->partRows ? rest : this->partRows);
        AscendC::LocalTensor<Sum> sum = sumBuf.Get<Sum>();
        AscendC::Duplicate(sum, static_cast<Sum>(0), this->tileLength);
        AscendC::PipeBarrier<PIPE_V>();
        for (uint32_t row = first; row < last; row++) {
            AddRow(static_cast<uint64_t>(row) * this->columnNum, this->columnNum);
        }
        StorePartial(block);
        AscendC::SyncAll();
        AscendC::Duplicate(sum, static_cast<Sum>(0), this->tileLength);
        AscendC::PipeBarrier<PIPE_V>();
        for (uint32_t other = 0; other < block; other++) {
            AddPartial(other);
        }
        for (uint32_t row = first; row < last; row++) {
            AddRow(static_cast<uint64_t>(row) * this->columnNum, this->columnNum);
            StoreSum(static_cast<uint64_t>(row) * this->columnNum, this->columnNum);
        }
    }

private:
    using Sum = std::conditional_t<std::is_same_v<T, half>, float, T>;

    __aicore__ inline void AddRow(uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> xLocal = inQueueX.template AllocTensor<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
        AscendC::DataCopyPad(xLocal, xGm[offset], copyParams, padParams);
        inQueueX.EnQue(xLocal);
        xLocal = inQueueX.template DeQue<T>();
        AscendC::LocalTensor<Sum> sum = sumBuf.Get<Sum>();
        if constexpr (std::is_same_v<T, half>) {
            AscendC::LocalTensor<Sum> x = xBuf.Get<Sum>();
            AscendC::Cast(x, xLocal, AscendC::RoundMode::CAST_NONE, count);
            AscendC::PipeBarrier<PIPE_V>();
            AscendC::Add(sum, sum, x, count);
        } else {
            AscendC::Add(sum, sum, xLocal, count);
        }
        AscendC::PipeBarrier<PIPE_V>();
        inQueueX.FreeTensor(xLocal);
    }

    __aicore__ inline void StoreSum(uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> yLocal = outQueueY.template AllocTensor<T>();
        if constexpr (std::is_same_v<T, half>) {
            AscendC::Cast(yLocal, sumBuf.Get<Sum>(), AscendC::RoundMode::CAST_RINT, count);
        } else {
            AscendC::Adds(yLocal, sumBuf.Get<Sum>(), static_cast<T>(0), count);
        }
        outQueueY.EnQue(yLocal);
        yLocal = outQueueY.template DeQue<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPad(yGm[offset], yLocal, copyParams);
        outQueueY.FreeTensor(yLocal);
    }

    __aicore__ inline void StorePartial(uint32_t block)
    {
        event_t vectorDone = static_cast<event_t>(pipe.FetchEventID(AscendC::HardEvent::V_MTE3));
        AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(vectorDone);
        AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(vectorDone);
        AscendC::DataCopy(partialGm[block * this->tileLength], sumBuf.Get<Sum>(), this->tileLength);
        AscendC::PipeBarrier<PIPE_ALL>();
    }

    __aicore__ inline void AddPartial(uint32_t block)
    {
        AscendC::LocalTensor<Sum> partial = partialQueue.template AllocTensor<Sum>();
        AscendC::DataCopy(partial, partialGm[block * this->tileLength], this->tileLength);
        partialQueue.EnQue(partial);
        partial = partialQueue.template DeQue<Sum>();
        AscendC::LocalTensor<Sum> sum = sumBuf.Get<Sum>();
        AscendC::Add(sum, sum, partial, this->tileLength);
        AscendC::PipeBarrier<PIPE_V>();
        partialQueue.FreeTensor(partial);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueX;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> partialQueue;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueY;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> sumBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> xBuf;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<T> yGm;
    AscendC::GlobalTensor<Sum> partialGm;
    uint32_t rowNum;
    uint32_t columnNum;
    uint32_t tileLength;
    uint32_t partRows;
};

extern "C" __global__ __aicore__ void cum_sum(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelCumSum<DTYPE_X> op;
    op.Init(x, y, workspace, tilingData);
    if (TILING_KEY_IS(1)) {
        op.ProcessColumns();
    } else if (TILING_KEY_IS(2)) {
        op.ProcessRows();
    }
}
