// Device side of LayerNorm: y = (x - mean) * rstd * gamma + beta over the last axis, computed in float; mean and rstd are outputs, too.
// Key 1: a row fits UB and is read once, gamma and beta once a core. Key 2: tile by tile, three times.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

constexpr uint32_t BLOCK_BYTES = 32;
constexpr uint32_t REPEAT_FLOATS = 64;
constexpr uint32_t STAT_ROWS = 64; // numbers of rows written at a time

template <typename T>
class KernelLayerNorm {
public:
    __aicore__ inline KernelLayerNorm() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR gamma, GM_ADDR beta, GM_ADDR y, GM_ADDR mean, GM_ADDR rstd, const LayerNormTilingData& tiling)
    {
        const uint32_t tileLength = tiling.tileLength;
        const uint32_t block = AscendC::GetBlockIdx();
        const uint32_t bigBefore = block < tiling.bigCoreNum ? block : tiling.bigCoreNum;
        this->firstRow = block * tiling.smallCoreRows + bigBefore;
        this->rowNum = tiling.smallCoreRows + (block < tiling.bigCoreNum ? 1 : 0);
        this->columnNum = tiling.columnNum;
        this->tileLength = tileLength;
        this->epsilon = tiling.epsilon;
        xGm.SetGlobalBuffer((__gm__ T*)x);
        gammaGm.SetGlobalBuffer((__gm__ T*)gamma);
        betaGm.SetGlobalBuffer((__gm__ T*)beta);
        yGm.SetGlobalBuffer((__gm__ T*)y);
        meanGm.SetGlobalBuffer((__gm__ float*)mean);
        rstdGm.SetGlobalBuffer((__gm__ float*)rstd);
        pipe.InitBuffer(inQueue, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueue, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(xBuf, tileLength * sizeof(float));
        pipe.InitBuffer(squareBuf, tileLength * sizeof(float));
        pipe.InitBuffer(gammaBuf, tileLength * sizeof(float));
        pipe.InitBuffer(betaBuf, tileLength * sizeof(float));
        pipe.InitBuffer(meanBuf, STAT_ROWS * sizeof(float));
        pipe.InitBuffer(rstdBuf, STAT_ROWS * sizeof(float));
        // ReduceSum keeps a value per repeat, ReduceMax an index beside it.
        const uint32_t workBytes = (tileLength / REPEAT_FLOATS + 1) * 2 * sizeof(float);
        pipe.InitBuffer(workBuf, (workBytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES);
        pipe.InitBuffer(resultBuf, BLOCK_BYTES);
    }

    __aicore__ inline void ProcessShortRows()
    {
        Load(gammaBuf.Get<float>(), gammaGm, 0, this->columnNum);
        Load(betaBuf.Get<float>(), betaGm, 0, this->columnNum);
        AscendC::LocalTensor<float> x = xBuf.Get<float>();
        for (uint32_t row = 0; row < this->rowNum; row++) {
            const uint64_t offset = static_cast<uint64_t>(this->firstRow + row) * this->columnNum;
            Load(x, xGm, offset, this->columnNum);
            const float mean = Sum(x, this->columnNum) / static_cast<int32_t>(this->columnNum);
            const float rstd = Rstd(SquaresAround(mean, this->columnNum));
            Normalise(rstd, this->columnNum);
            Store(yGm, offset, x, this->columnNum);
            KeepStatistics(row, mean, rstd);
        }
    }

    __aicore__ inline void ProcessLongRows()
    {
        AscendC::LocalTensor<float> x = xBuf.Get<float>();
        for (uint32_t row = 0; row < this->rowNum; row++) {
            const uint64_t offset = static_cast<uint64_t>(this->firstRow + row) * this->columnNum;
            float sum = 0.0f;
            for (uint32_t column = 0; column < this->columnNum; column += this->tileLength) {
                Load(x, xGm, offset + column, CountFrom(column));
                sum += Sum(x, CountFrom(column));
            }
            const float mean = sum / static_cast<int32_t>(this->columnNum);
            float squares = 0.0f;
            for (uint32_t column = 0; column < this->columnNum; column += this->tileLength) {
                Load(x, xGm, offset + column, CountFrom(column));
                squares += SquaresAround(mean, CountFrom(column));
            }
            const float rstd = Rstd(squares);
            for (uint32_t column = 0; column < this->columnNum; column += this->tileLength) {
                const uint32_t count = CountFrom(column);
                Load(x, xGm, offset + column, count);
                Load(gammaBuf.Get<float>(), gammaGm, column, count);
                Load(betaBuf.Get<float>(), betaGm, column, count);
                AscendC::Adds(x, x, -mean, count);
                AscendC::PipeBarrier<PIPE_V>();
                Normalise(rstd, count);
                Store(yGm, offset + column, x, count);
            }
            KeepStatistics(row, mean, rstd);
        }
    }

private:
    __aicore__ inline uint32_t CountFrom(uint32_t column)
    {
        const uint32_t rest = this->columnNum - column;
        return rest < this->tileLength ? rest : this->tileLength;
    }

    // Leaves x - mean in the place of x.
    __aicore__ inline float SquaresAround(float mean, uint32_t count)
    {
        AscendC::LocalTensor<float> x = xBuf.Get<float>();
        AscendC::LocalTensor<float> square = squareBuf.Get<float>();
        AscendC::Adds(x, x, -mean, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Mul(square, x, x, count);
        AscendC::PipeBarrier<PIPE_V>();
        return Sum(square, count);
    }

    __aicore__ inline float Rstd(float squares)
    {
        return 1.0f / sqrt(squares / static_cast<int32_t>(this->columnNum) + this->epsilon);
    }

    __aicore__ inline void Normalise(float rstd, uint32_t count)
    {
        AscendC::LocalTensor<float> x = xBuf.Get<float>();
        AscendC::Muls(x, x, rstd, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Mul(x, x, gammaBuf.Get<float>(), count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Add(x, x, betaBuf.Get<float>(), count);
        AscendC::PipeBarrier<PIPE_V>();
    }

    __aicore__ inline void KeepStatistics(uint32_t row, float mean, float rstd)
    {
        const uint32_t place = row % STAT_ROWS;
        meanBuf.Get<float>().SetValue(place, mean);
        rstdBuf.Get<float>().SetValue(place, rstd);
        if (place + 1 == STAT_ROWS || row + 1 == this->rowNum) {
            Flush(meanGm, this->firstRow + row - place, meanBuf.Get<float>(), place + 1);
            Flush(rstdGm, this->firstRow + row - place, rstdBuf.Get<float>(), place + 1);
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

    __aicore__ inline void Store(const AscendC::GlobalTensor<T>& target, uint64_t offset,
                                 const AscendC::LocalTensor<float>& value, uint32_t count)
    {
        AscendC::LocalTensor<T> local = outQueue.template AllocTensor<T>();
        if constexpr (std::is_same_v<T, float>) {
            AscendC::Adds(local, value, 0.0f, count);
        } else {
            AscendC::Cast(local, value, AscendC::RoundMode::CAST_RINT, count);
        }
        outQueue.EnQue(local);
        local = outQueue.template DeQue<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPad(target[offset], local, copyParams);
        outQueue.FreeTensor(local);
    }

    __aicore__ inline float Sum(const AscendC::LocalTensor<float>& value, uint32_t count)
    {
        AscendC::LocalTensor<float> result = resultBuf.Get<float>();
        AscendC::ReduceSum(result, value, workBuf.Get<float>(), count);
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
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueue;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> xBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> squareBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> gammaBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> betaBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> meanBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> rstdBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> resultBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> workBuf;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<T> gammaGm;
    AscendC::GlobalTensor<T> betaGm;
    AscendC::GlobalTensor<T> yGm;
    AscendC::GlobalTensor<float> meanGm;
    AscendC::GlobalTensor<float> rstdGm;
    uint32_t firstRow;
    uint32_t rowNum;
    uint32_t columnNum;
    uint32_t tileLength;
    float epsilon;
};

extern "C" __global__ __aicore__ void layer_norm(GM_ADDR x, GM_ADDR gamma, GM_ADDR beta, GM_ADDR y, GM_ADDR mean, GM_ADDR rstd, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelLayerNorm<DTYPE_X> op;
    op.Init(x, gamma, beta, y, mean, rstd, tilingData);
    if (TILING_KEY_IS(1)) {
        op.ProcessShortRows();
    } else if (TILING_KEY_IS(2)) {
        op.ProcessLongRows();
    }
}
