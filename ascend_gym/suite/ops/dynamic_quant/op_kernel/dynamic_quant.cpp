// Device side of DynamicQuant: scale = max |x| / 127 of each row, y = round(x / scale) as 8-bit integers.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

constexpr uint32_t BLOCK_BYTES = 32;
constexpr uint32_t REPEAT_FLOATS = 64;
constexpr uint32_t STAT_ROWS = 64; // scales written at a time
constexpr float LARGEST = 127.0f;

template <typename T>
class KernelDynamicQuant {
public:
    __aicore__ inline KernelDynamicQuant() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR scale, const DynamicQuantTilingData& tiling)
    {
        const uint32_t tileLength = tiling.tileLength;
        const uint32_t block = AscendC::GetBlockIdx();
        const uint32_t bigBefore = block < tiling.bigCoreNum ? block : tiling.bigCoreNum;
        this->firstRow = block * tiling.smallCoreRows + bigBefore;
        this->rowNum = tiling.smallCoreRows + (block < tiling.bigCoreNum ? 1 : 0);
        this->columnNum = tiling.columnNum;
        xGm.SetGlobalBuffer((__gm__ T*)x);
        yGm.SetGlobalBuffer((__gm__ int8_t*)y);
        scaleGm.SetGlobalBuffer((__gm__ float*)scale);
        pipe.InitBuffer(inQueue, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(int8_t));
        pipe.InitBuffer(xBuf, tileLength * sizeof(float));
        pipe.InitBuffer(valueBuf, tileLength * sizeof(float));
        pipe.InitBuffer(halfBuf, tileLength * sizeof(half));
        pipe.InitBuffer(scaleBuf, STAT_ROWS * sizeof(float));
        // ReduceSum keeps a value per repeat, ReduceMax an index beside it.
        const uint32_t workBytes = (tileLength / REPEAT_FLOATS + 1) * 2 * sizeof(float);
        pipe.InitBuffer(workBuf, (workBytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES);
        pipe.InitBuffer(resultBuf, BLOCK_BYTES);
    }

    __aicore__ inline void Process()
    {
        AscendC::LocalTensor<float> x = xBuf.Get<float>();
        AscendC::LocalTensor<float> magnitude = valueBuf.Get<float>();
        for (uint32_t row = 0; row < this->rowNum; row++) {
            const uint64_t offset = static_cast<uint64_t>(this->firstRow + row) * this->columnNum;
            Load(x, xGm, offset, this->columnNum);
            AscendC::Abs(magnitude, x, this->columnNum);
            AscendC::PipeBarrier<PIPE_V>();
            const float scale = Largest(magnitude, this->columnNum) / LARGEST;
            StoreQuantized(offset, scale > 0.0f ? 1.0f / scale : 0.0f, this->columnNum);
            KeepScale(row, scale);
        }
    }

private:
    __aicore__ inline void StoreQuantized(uint64_t offset, float factor, uint32_t count)
    {
        AscendC::LocalTensor<float> x = xBuf.Get<float>();
        AscendC::LocalTensor<int32_t> whole = valueBuf.Get<int32_t>();
        AscendC::LocalTensor<half> small = halfBuf.Get<half>();
        AscendC::LocalTensor<int8_t> yLocal = outQueueY.template AllocTensor<int8_t>();
        AscendC::Muls(x, x, factor, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Cast(whole, x, AscendC::RoundMode::CAST_RINT, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::SetDeqScale(static_cast<half>(1.0f));
        AscendC::Cast(small, whole, AscendC::RoundMode::CAST_NONE, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Cast(yLocal, small, AscendC::RoundMode::CAST_TRUNC, count);
        outQueueY.EnQue(yLocal);
        yLocal = outQueueY.template DeQue<int8_t>();
        AscendC::DataCopyExtParams copyParams{1, count, 0, 0, 0};
        AscendC::DataCopyPad(yGm[offset], yLocal, copyParams);
        outQueueY.FreeTensor(yLocal);
    }

    __aicore__ inline void KeepScale(uint32_t row, float scale)
    {
        const uint32_t place = row % STAT_ROWS;
        scaleBuf.Get<float>().SetValue(place, scale);
        if (place + 1 == STAT_ROWS || row + 1 == this->rowNum) {
            Flush(scaleGm, this->firstRow + row - place, scaleBuf.Get<float>(), place + 1);
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
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueY;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> xBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> valueBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> halfBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> scaleBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> resultBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> workBuf;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<int8_t> yGm;
    AscendC::GlobalTensor<float> scaleGm;
    uint32_t firstRow;
    uint32_t rowNum;
    uint32_t columnNum;
};

extern "C" __global__ __aicore__ void dynamic_quant(GM_ADDR x, GM_ADDR y, GM_ADDR scale, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelDynamicQuant<DTYPE_X> op;
    op.Init(x, y, scale, tilingData);
    op.Process();
}
