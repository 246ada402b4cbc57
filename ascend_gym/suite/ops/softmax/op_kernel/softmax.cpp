// Device side of Softmax over the last axis, computed in float. A row that fits one tile is read once;
// a longer one is read three times: for its maximum, for its sum and for its output.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

constexpr uint32_t BLOCK_BYTES = 32;
constexpr uint32_t REPEAT_FLOATS = 64;

template <typename T>
class KernelSoftmax {
public:
    __aicore__ inline KernelSoftmax() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, uint32_t rowNum, uint32_t coreRowNum, uint32_t columnNum,
                                uint32_t tileLength)
    {
        const uint32_t rowBegin = coreRowNum * AscendC::GetBlockIdx();
        const uint32_t rest = rowBegin < rowNum ? rowNum - rowBegin : 0;
        this->coreRowNum = rest < coreRowNum ? rest : coreRowNum;
        this->columnNum = columnNum;
        this->tileLength = tileLength;
        const uint64_t begin = static_cast<uint64_t>(rowBegin) * columnNum;
        const uint64_t length = static_cast<uint64_t>(this->coreRowNum) * columnNum;
        xGm.SetGlobalBuffer((__gm__ T*)x + begin, length);
        yGm.SetGlobalBuffer((__gm__ T*)y + begin, length);
        pipe.InitBuffer(inQueueX, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(valueBuf, tileLength * sizeof(float));
        pipe.InitBuffer(resultBuf, BLOCK_BYTES);
        // ReduceMax keeps a value and an index per repeat.
        const uint32_t workBytes = (tileLength / REPEAT_FLOATS + 1) * 2 * sizeof(float);
        pipe.InitBuffer(workBuf, (workBytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES);
    }

    __aicore__ inline void Process()
    {
        for (uint32_t row = 0; row < this->coreRowNum; row++) {
            const uint64_t offset = static_cast<uint64_t>(row) * this->columnNum;
            if (this->columnNum <= this->tileLength) {
                ProcessShortRow(offset);
            } else {
                ProcessLongRow(offset);
            }
        }
    }

private:
    __aicore__ inline void ProcessShortRow(uint64_t offset)
    {
        LoadTile(offset, this->columnNum);
        const float rowMax = MaxOfTile(this->columnNum);
        ExpOfTile(rowMax, this->columnNum);
        const float rowSum = SumOfTile(this->columnNum);
        StoreTile(offset, 1.0f / rowSum, this->columnNum);
    }

    __aicore__ inline void ProcessLongRow(uint64_t offset)
    {
        LoadTile(offset, this->tileLength);
        float rowMax = MaxOfTile(this->tileLength);
        for (uint32_t column = this->tileLength; column < this->columnNum; column += this->tileLength) {
            LoadTile(offset + column, TileCount(column));
            const float tileMax = MaxOfTile(TileCount(column));
            rowMax = tileMax > rowMax ? tileMax : rowMax;
        }
        float rowSum = 0.0f;
        for (uint32_t column = 0; column < this->columnNum; column += this->tileLength) {
            LoadTile(offset + column, TileCount(column));
            ExpOfTile(rowMax, TileCount(column));
            rowSum += SumOfTile(TileCount(column));
        }
        for (uint32_t column = 0; column < this->columnNum; column += this->tileLength) {
            LoadTile(offset + column, TileCount(column));
            ExpOfTile(rowMax, TileCount(column));
            StoreTile(offset + column, 1.0f / rowSum, TileCount(column));
        }
    }

    __aicore__ inline uint32_t TileCount(uint32_t column)
    {
        const uint32_t rest = this->columnNum - column;
        return rest < this->tileLength ? rest : this->tileLength;
    }

    __aicore__ inline void LoadTile(uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> xLocal = inQueueX.AllocTensor<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
        AscendC::DataCopyPad(xLocal, xGm[offset], copyParams, padParams);
        inQueueX.EnQue(xLocal);

        xLocal = inQueueX.DeQue<T>();
        AscendC::LocalTensor<float> value = valueBuf.Get<float>();
        if constexpr (std::is_same_v<T, half>) {
            AscendC::Cast(value, xLocal, AscendC::RoundMode::CAST_NONE, count);
        } else {
            AscendC::Adds(value, xLocal, 0.0f, count);
        }
        AscendC::PipeBarrier<PIPE_V>();
        inQueueX.FreeTensor(xLocal);
    }

    __aicore__ inline float MaxOfTile(uint32_t count)
    {
        AscendC::LocalTensor<float> result = resultBuf.Get<float>();
        AscendC::ReduceMax(result, valueBuf.Get<float>(), workBuf.Get<float>(), count);
        return ReadResult(result);
    }

    __aicore__ inline float SumOfTile(uint32_t count)
    {
        AscendC::LocalTensor<float> result = resultBuf.Get<float>();
        AscendC::ReduceSum(result, valueBuf.Get<float>(), workBuf.Get<float>(), count);
        return ReadResult(result);
    }

    __aicore__ inline float ReadResult(const AscendC::LocalTensor<float>& result)
    {
        event_t vectorDone = static_cast<event_t>(pipe.FetchEventID(AscendC::HardEvent::V_S));
        AscendC::SetFlag<AscendC::HardEvent::V_S>(vectorDone);
        AscendC::WaitFlag<AscendC::HardEvent::V_S>(vectorDone);
        const float value = result.GetValue(0);
        event_t scalarDone = static_cast<event_t>(pipe.FetchEventID(AscendC::HardEvent::S_V));
        AscendC::SetFlag<AscendC::HardEvent::S_V>(scalarDone);
        AscendC::WaitFlag<AscendC::HardEvent::S_V>(scalarDone);
        return value;
    }

    __aicore__ inline void ExpOfTile(float rowMax, uint32_t count)
    {
        AscendC::LocalTensor<float> value = valueBuf.Get<float>();
        AscendC::Adds(value, value, -rowMax, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Exp(value, value, count);
        AscendC::PipeBarrier<PIPE_V>();
    }

    __aicore__ inline void StoreTile(uint64_t offset, float factor, uint32_t count)
    {
        AscendC::LocalTensor<float> value = valueBuf.Get<float>();
        AscendC::LocalTensor<T> yLocal = outQueueY.AllocTensor<T>();
        if constexpr (std::is_same_v<T, half>) {
            AscendC::Muls(value, value, factor, count);
            AscendC::PipeBarrier<PIPE_V>();
            AscendC::Cast(yLocal, value, AscendC::RoundMode::CAST_RINT, count);
        } else {
            AscendC::Muls(yLocal, value, factor, count);
        }
        outQueueY.EnQue<T>(yLocal);

        yLocal = outQueueY.DeQue<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPad(yGm[offset], yLocal, copyParams);
        outQueueY.FreeTensor(yLocal);
        AscendC::PipeBarrier<PIPE_ALL>();
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueX;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueY;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> valueBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> resultBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> workBuf;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<T> yGm;
    uint32_t coreRowNum;
    uint32_t columnNum;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void softmax(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelSoftmax<DTYPE_X> op;
    op.Init(x, y, tilingData.rowNum, tilingData.coreRowNum, tilingData.columnNum, tilingData.tileLength);
    op.Process();
}
