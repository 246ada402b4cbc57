// Device side of CrossEntropyLoss: y = log(sum(exp(x))) - x[target] for each row. A row is read twice: for its largest element and for
// the sum.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

constexpr uint32_t BLOCK_BYTES = 32;
constexpr uint32_t REPEAT_FLOATS = 64;
constexpr uint32_t STAT_ROWS = 64; // losses written at a time

template <typename T>
class KernelCrossEntropyLoss {
public:
    __aicore__ inline KernelCrossEntropyLoss() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR target, GM_ADDR y, const CrossEntropyLossTilingData& tiling)
    {
        const uint32_t tileLength = tiling.tileLength;
        const uint32_t block = AscendC::GetBlockIdx();
        const uint32_t bigBefore = block < tiling.bigCoreNum ? block : tiling.bigCoreNum;
        this->firstRow = block * tiling.smallCoreRows + bigBefore;
        this->rowNum = tiling.smallCoreRows + (block < tiling.bigCoreNum ? 1 : 0);
        this->columnNum = tiling.columnNum;
        this->tileLength = tileLength;
        xGm.SetGlobalBuffer((__gm__ T*)x);
        targetGm.SetGlobalBuffer((__gm__ int32_t*)target);
        yGm.SetGlobalBuffer((__gm__ float*)y);
        pipe.InitBuffer(inQueue, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(xBuf, tileLength * sizeof(float));
        pipe.InitBuffer(lossBuf, STAT_ROWS * sizeof(float));
        // ReduceSum keeps a value per repeat, ReduceMax an index beside it.
        const uint32_t workBytes = (tileLength / REPEAT_FLOATS + 1) * 2 * sizeof(float);
        pipe.InitBuffer(workBuf, (workBytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES);
        pipe.InitBuffer(resultBuf, BLOCK_BYTES);
    }

    __aicore__ inline void Process()
    {
        for (uint32_t row = 0; row < this->rowNum; row++) {
            const uint64_t offset = static_cast<uint64_t>(this->firstRow + row) * this->columnNum;
            const float largest = LargestOfRow(offset);
            const float sum = SumOfExponentials(offset, largest);
            const uint32_t target = targetGm.GetValue(this->firstRow + row);
            const float chosen = static_cast<float>(xGm.GetValue(offset + target));
            KeepLoss(row, LogOf(sum) + largest - chosen);
        }
    }

private:
    __aicore__ inline uint32_t CountFrom(uint32_t column)
    {
        const uint32_t rest = this->columnNum - column;
        return rest < this->tileLength ? rest : this->tileLength;
    }

    __aicore__ inline float LargestOfRow(uint64_t offset)
    {
        AscendC::LocalTensor<float> x = xBuf.Get<float>();
        Load(x, xGm, offset, CountFrom(0));
        float largest = Largest(x, CountFrom(0));
        for (uint32_t column = this->tileLength; column < this->columnNum; column += this->tileLength) {
            Load(x, xGm, offset + column, CountFrom(column));
            const float other = Largest(x, CountFrom(column));
            largest = other > largest ? other : largest;
        }
        return largest;
    }

    __aicore__ inline float SumOfExponentials(uint64_t offset, float largest)
    {
        AscendC::LocalTensor<float> x = xBuf.Get<float>();
        float sum = 0.0f;
        for (uint32_t column = 0; column < this->columnNum; column += this->tileLength) {
            const uint32_t count = CountFrom(column);
            Load(x, xGm, offset + column, count);
            AscendC::Adds(x, x, -largest, count);
            AscendC::PipeBarrier<PIPE_V>();
            AscendC::Exp(x, x, count);
            AscendC::PipeBarrier<PIPE_V>();
            sum += Sum(x, count);
        }
        return sum;
    }

    __aicore__ inline float LogOf(float number)
    {
        AscendC::LocalTensor<float> result = resultBuf.Get<float>();
        AscendC::Duplicate(result, number, BLOCK_BYTES / sizeof(float));
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Ln(result, result, BLOCK_BYTES / sizeof(float));
        return FirstOf(result);
    }

    __aicore__ inline void KeepLoss(uint32_t row, float loss)
    {
        const uint32_t place = row % STAT_ROWS;
        lossBuf.Get<float>().SetValue(place, loss);
        if (place + 1 == STAT_ROWS || row + 1 == this->rowNum) {
            Flush(yGm, this->firstRow + row - place, lossBuf.Get<float>(), place + 1);
        }
    }

    __aicore__ inline void Load(const AscendC::LocalTensor<float>& value, const AscendC::GlobalTensor<T>& source,
                                uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> local = inQueue.template AllocTensor<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
        AscendC::DataCopyPad(local, source[offset], copyParams, padParams);
        inQueue.EnQue(local);
        local = inQueue.template DeQue<T>();
        if constexpr (std::is_same_v<T, float>) {
            AscendC::Adds(value, local, 0.0f, count);
        } else {
            AscendC::Cast(value, local, AscendC::RoundMode::CAST_NONE, count);
        }
        AscendC::PipeBarrier<PIPE_V>();
        inQueue.FreeTensor(local);
    }

    __aicore__ inline float Sum(const AscendC::LocalTensor<float>& value, uint32_t count)
    {
        AscendC::LocalTensor<float> result = resultBuf.Get<float>();
        AscendC::ReduceSum(result, value, workBuf.Get<float>(), count);
        return FirstOf(result);
    }

    __aicore__ inline float Largest(const AscendC::LocalTensor<float>& value, uint32_t count)
    {
        AscendC::LocalTensor<float> result = resultBuf.Get<float>();
        AscendC::ReduceMax(result, value, workBuf.Get<float>(), count);
        return FirstOf(result);
    }

    __aicore__ inline float FirstOf(const AscendC::LocalTensor<float>& result)
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

    // Numbers of single rows are gathered and written together.
    __aicore__ inline void Flush(const AscendC::GlobalTensor<float>& target, uint64_t first,
                                 const AscendC::LocalTensor<float>& numbers, uint32_t count)
    {
        event_t scalarDone = static_cast<event_t>(pipe.FetchEventID(AscendC::HardEvent::S_MTE3));
        AscendC::SetFlag<AscendC::HardEvent::S_MTE3>(scalarDone);
        AscendC::WaitFlag<AscendC::HardEvent::S_MTE3>(scalarDone);
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(float)), 0, 0, 0};
        AscendC::DataCopyPad(target[first], numbers, copyParams);
        event_t copyDone = static_cast<event_t>(pipe.FetchEventID(AscendC::HardEvent::MTE3_S));
        AscendC::SetFlag<AscendC::HardEvent::MTE3_S>(copyDone);
        AscendC::WaitFlag<AscendC::HardEvent::MTE3_S>(copyDone);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueue;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> xBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> lossBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> resultBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> workBuf;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<int32_t> targetGm;
    AscendC::GlobalTensor<float> yGm;
    uint32_t firstRow;
    uint32_t rowNum;
    uint32_t columnNum;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void cross_entropy_loss(GM_ADDR x, GM_ADDR target, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelCrossEntropyLoss<DTYPE_X> op;
    op.Init(x, target, y, tilingData);
    op.Process();
}
