// Device side of ReduceSum: sums along the last axis, in float. Key 1: a core takes whole rows. Key 2: several cores share a
// row, and the first of them adds up what the others found.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

constexpr uint32_t BLOCK_BYTES = 32;
constexpr uint32_t REPEAT_FLOATS = 64;
constexpr uint32_t SLOT_FLOATS = 8; // of one core in the workspace
constexpr uint32_t MAX_CORES = 64;

template <typename T>
class KernelReduceSum {
public:
    __aicore__ inline KernelReduceSum() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, const ReduceSumTilingData& tiling)
    {
        const uint32_t tileLength = tiling.tileLength;
        this->columnNum = tiling.columnNum;
        this->rowNum = tiling.rowNum;
        this->partNum = tiling.partNum;
        this->partLength = tiling.partLength;
        this->tileLength = tileLength;
        xGm.SetGlobalBuffer((__gm__ T*)x);
        yGm.SetGlobalBuffer((__gm__ float*)y);
        partialGm.SetGlobalBuffer((__gm__ float*)AscendC::GetUserWorkspace(workspace));
        pipe.InitBuffer(inQueue, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(xBuf, tileLength * sizeof(float));
        pipe.InitBuffer(numberBuf, BLOCK_BYTES);
        pipe.InitBuffer(partialBuf, MAX_CORES * SLOT_FLOATS * sizeof(float));
        // ReduceSum keeps a value per repeat, ReduceMax an index beside it.
        const uint32_t workBytes = (tileLength / REPEAT_FLOATS + 1) * 2 * sizeof(float);
        pipe.InitBuffer(workBuf, (workBytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES);
        pipe.InitBuffer(resultBuf, BLOCK_BYTES);
    }

    __aicore__ inline void ProcessWholeRows()
    {
        for (uint32_t row = AscendC::GetBlockIdx(); row < this->rowNum; row += AscendC::GetBlockNum()) {
            StoreNumber(row, SumOfPart(static_cast<uint64_t>(row) * this->columnNum, this->columnNum));
        }
    }

    __aicore__ inline void ProcessParts()
    {
        const uint32_t block = AscendC::GetBlockIdx();
        const uint32_t row = block / this->partNum;
        const uint64_t begin = block % this->partNum * this->partLength;
        const uint64_t rest = this->columnNum - begin;
        const uint64_t length = rest < this->partLength ? rest : this->partLength;
        KeepPartial(block, SumOfPart(row * this->columnNum + begin, length));
        AscendC::SyncAll();
        if (begin == 0) {
            StoreNumber(row, SumOfPartials(block, this->partNum));
        }
    }

private:
    __aicore__ inline float SumOfPart(uint64_t offset, uint64_t length)
    {
        AscendC::LocalTensor<float> x = xBuf.Get<float>();
        float sum = 0.0f;
        for (uint64_t column = 0; column < length; column += this->tileLength) {
            const uint64_t rest = length - column;
            const uint32_t count = rest < this->tileLength ? rest : this->tileLength;
            Load(x, xGm, offset + column, count);
            sum += Sum(x, count);
        }
        return sum;
    }

    // Writes one number to a place of its own in the workspace.
    __aicore__ inline void KeepPartial(uint32_t place, float number)
    {
        AscendC::LocalTensor<float> local = numberBuf.Get<float>();
        local.SetValue(0, number);
        event_t scalarDone = static_cast<event_t>(pipe.FetchEventID(AscendC::HardEvent::S_MTE3));
        AscendC::SetFlag<AscendC::HardEvent::S_MTE3>(scalarDone);
        AscendC::WaitFlag<AscendC::HardEvent::S_MTE3>(scalarDone);
        AscendC::DataCopy(partialGm[place * SLOT_FLOATS], local, SLOT_FLOATS);
        AscendC::PipeBarrier<PIPE_ALL>();
    }

    __aicore__ inline float SumOfPartials(uint32_t first, uint32_t count)
    {
        AscendC::LocalTensor<float> partials = partialBuf.Get<float>();
        AscendC::DataCopy(partials, partialGm[first * SLOT_FLOATS], count * SLOT_FLOATS);
        event_t copyDone = static_cast<event_t>(pipe.FetchEventID(AscendC::HardEvent::MTE2_S));
        AscendC::SetFlag<AscendC::HardEvent::MTE2_S>(copyDone);
        AscendC::WaitFlag<AscendC::HardEvent::MTE2_S>(copyDone);
        float sum = 0.0f;
        for (uint32_t i = 0; i < count; i++) {
            sum += partials.GetValue(i * SLOT_FLOATS);
        }
        return sum;
    }

    __aicore__ inline void StoreNumber(uint64_t place, float number)
    {
        AscendC::LocalTensor<float> local = numberBuf.Get<float>();
        local.SetValue(0, number);
        event_t scalarDone = static_cast<event_t>(pipe.FetchEventID(AscendC::HardEvent::S_MTE3));
        AscendC::SetFlag<AscendC::HardEvent::S_MTE3>(scalarDone);
        AscendC::WaitFlag<AscendC::HardEvent::S_MTE3>(scalarDone);
        AscendC::DataCopyExtParams copyParams{1, sizeof(float), 0, 0, 0};
        AscendC::DataCopyPad(yGm[place], local, copyParams);
        event_t copyDone = static_cast<event_t>(pipe.FetchEventID(AscendC::HardEvent::MTE3_S));
        AscendC::SetFlag<AscendC::HardEvent::MTE3_S>(copyDone);
        AscendC::WaitFlag<AscendC::HardEvent::MTE3_S>(copyDone);
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

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueue;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> xBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> numberBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> partialBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> resultBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> workBuf;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<float> yGm;
    AscendC::GlobalTensor<float> partialGm;
    uint64_t columnNum;
    uint32_t rowNum;
    uint32_t partNum;
    uint64_t partLength;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void reduce_sum(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelReduceSum<DTYPE_X> op;
    op.Init(x, y, workspace, tilingData);
    if (TILING_KEY_IS(1)) {
        op.ProcessWholeRows();
    } else if (TILING_KEY_IS(2)) {
        op.ProcessParts();
    }
}
