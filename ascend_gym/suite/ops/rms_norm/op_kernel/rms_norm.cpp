// Device side of RmsNorm over the last axis: y = x / sqrt(mean(x^2) + epsilon) * gamma, computed in float.
// A row that fits one tile is read once and gamma once per core; a longer one is read twice, tile by tile.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

constexpr uint32_t BLOCK_BYTES = 32;
constexpr uint32_t REPEAT_FLOATS = 64;

template <typename T>
class KernelRmsNorm {
public:
    __aicore__ inline KernelRmsNorm() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR gamma, GM_ADDR y, uint32_t rowNum, uint32_t coreRowNum,
                                uint32_t columnNum, uint32_t tileLength, float epsilon)
    {
        const uint32_t rowBegin = coreRowNum * AscendC::GetBlockIdx();
        const uint32_t rest = rowBegin < rowNum ? rowNum - rowBegin : 0;
        this->coreRowNum = rest < coreRowNum ? rest : coreRowNum;
        this->columnNum = columnNum;
        this->tileLength = tileLength;
        this->epsilon = epsilon;
        const uint64_t begin = static_cast<uint64_t>(rowBegin) * columnNum;
        const uint64_t length = static_cast<uint64_t>(this->coreRowNum) * columnNum;
        xGm.SetGlobalBuffer((__gm__ T*)x + begin, length);
        gammaGm.SetGlobalBuffer((__gm__ T*)gamma, columnNum);
        yGm.SetGlobalBuffer((__gm__ T*)y + begin, length);
        pipe.InitBuffer(inQueue, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(xBuf, tileLength * sizeof(float));
        pipe.InitBuffer(gammaBuf, tileLength * sizeof(float));
        pipe.InitBuffer(squareBuf, tileLength * sizeof(float));
        pipe.InitBuffer(resultBuf, BLOCK_BYTES);
        // ReduceSum may keep a value per repeat.
        const uint32_t workBytes = (tileLength / REPEAT_FLOATS + 1) * sizeof(float);
        pipe.InitBuffer(workBuf, (workBytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES);
    }

    __aicore__ inline void Process()
    {
        if (this->columnNum > this->tileLength) {
            for (uint32_t row = 0; row < this->coreRowNum; row++) {
                ProcessLongRow(static_cast<uint64_t>(row) * this->columnNum);
            }
            return;
        }
        if (this->coreRowNum > 0) {
            Load(gammaBuf.Get<float>(), gammaGm, 0, this->columnNum);
        }
        for (uint32_t row = 0; row < this->coreRowNum; row++) {
            const uint64_t offset = static_cast<uint64_t>(row) * this->columnNum;
            Load(xBuf.Get<float>(), xGm, offset, this->columnNum);
            const float factor = ReciprocalRms(SumOfSquares(this->columnNum));
            Store(offset, factor, this->columnNum);
        }
    }

private:
    __aicore__ inline void ProcessLongRow(uint64_t offset)
    {
        float sum = 0.0f;
        for (uint32_t column = 0; column < this->columnNum; column += this->tileLength) {
            Load(xBuf.Get<float>(), xGm, offset + column, TileCount(column));
            sum += SumOfSquares(TileCount(column));
        }
        const float factor = ReciprocalRms(sum);
        for (uint32_t column = 0; column < this->columnNum; column += this->tileLength) {
            Load(gammaBuf.Get<float>(), gammaGm, column, TileCount(column));
            Load(xBuf.Get<float>(), xGm, offset + column, TileCount(column));
            Store(offset + column, factor, TileCount(column));
        }
    }

    __aicore__ inline uint32_t TileCount(uint32_t column)
    {
        const uint32_t rest = this->columnNum - column;
        return rest < this->tileLength ? rest : this->tileLength;
    }

    __aicore__ inline void Load(const AscendC::LocalTensor<float>& to, const AscendC::GlobalTensor<T>& from,
                                uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> local = inQueue.AllocTensor<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
        AscendC::DataCopyPad(local, from[offset], copyParams, padParams);
        inQueue.EnQue(local);

        local = inQueue.DeQue<T>();
        if constexpr (std::is_same_v<T, half>) {
            AscendC::Cast(to, local, AscendC::RoundMode::CAST_NONE, count);
        } else {
            AscendC::Adds(to, local, 0.0f, count);
        }
        AscendC::PipeBarrier<PIPE_ALL>();
        inQueue.FreeTensor(local);
    }

    __aicore__ inline float SumOfSquares(uint32_t count)
    {
        AscendC::LocalTensor<float> x = xBuf.Get<float>();
        AscendC::LocalTensor<float> square = squareBuf.Get<float>();
        AscendC::LocalTensor<float> result = resultBuf.Get<float>();
        AscendC::Mul(square, x, x, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::ReduceSum(result, square, workBuf.Get<float>(), count);
        return ReadResult(result);
    }

    __aicore__ inline float ReciprocalRms(float sum)
    {
        AscendC::LocalTensor<float> result = resultBuf.Get<float>();
        AscendC::Duplicate(result, sum / static_cast<int32_t>(this->columnNum) + this->epsilon, 8);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Sqrt(result, result, 8);
        return 1.0f / ReadResult(result);
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

    __aicore__ inline void Store(uint64_t offset, float factor, uint32_t count)
    {
        AscendC::LocalTensor<float> x = xBuf.Get<float>();
        AscendC::LocalTensor<T> yLocal = outQueueY.AllocTensor<T>();
        AscendC::Muls(x, x, factor, count);
        AscendC::PipeBarrier<PIPE_V>();
        if constexpr (std::is_same_v<T, half>) {
            AscendC::Mul(x, x, gammaBuf.Get<float>(), count);
            AscendC::PipeBarrier<PIPE_V>();
            AscendC::Cast(yLocal, x, AscendC::RoundMode::CAST_RINT, count);
        } else {
            AscendC::Mul(yLocal, x, gammaBuf.Get<float>(), count);
        }
        outQueueY.EnQue<T>(yLocal);

        yLocal = outQueueY.DeQue<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPad(yGm[offset], yLocal, copyParams);
        outQueueY.FreeTensor(yLocal);
        AscendC::PipeBarrier<PIPE_ALL>();
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueue;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueY;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> xBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> gammaBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> squareBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> resultBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> workBuf;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<T> gammaGm;
    AscendC::GlobalTensor<T> yGm;
    uint32_t coreRowNum;
    uint32_t columnNum;
    uint32_t tileLength;
    float epsilon;
};

extern "C" __global__ __aicore__ void rms_norm(GM_ADDR x, GM_ADDR gamma, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelRmsNorm<DTYPE_X> op;
    op.Init(x, gamma, y, tilingData.rowNum, tilingData.coreRowNum, tilingData.columnNum, tilingData.tileLength,
            tilingData.epsilon);
    op.Process();
}
