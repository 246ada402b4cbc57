// Device side of MseLoss: y = mean((x - target)^2). Each core leaves its sum in the workspace; the first one adds them up.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

constexpr uint32_t BLOCK_BYTES = 32;
constexpr uint32_t REPEAT_FLOATS = 64;
constexpr uint32_t SLOT_FLOATS = 8; // of one core in the workspace
constexpr uint32_t MAX_CORES = 64;

template <typename T>
class KernelMseLoss {
public:
    __aicore__ inline KernelMseLoss() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR target, GM_ADDR y, GM_ADDR workspace, const MseLossTilingData& tiling)
    {
        const uint64_t block = AscendC::GetBlockIdx();
        const uint64_t bigBefore = block < tiling.bigCoreNum ? block : tiling.bigCoreNum;
        this->begin = block * tiling.smallCoreLength + bigBefore * tiling.unitLength;
        const uint64_t share = tiling.smallCoreLength + (block < tiling.bigCoreNum ? tiling.unitLength : 0);
        const uint64_t rest = tiling.totalLength - this->begin;
        this->length = rest < share ? rest : share;
        this->totalLength = tiling.totalLength;
        const uint32_t tileLength = tiling.tileLength;
        this->tileLength = tileLength;
        xGm.SetGlobalBuffer((__gm__ T*)x);
        targetGm.SetGlobalBuffer((__gm__ T*)target);
        yGm.SetGlobalBuffer((__gm__ float*)y);
        partialGm.SetGlobalBuffer((__gm__ float*)AscendC::GetUserWorkspace(workspace));
        pipe.InitBuffer(inQueue, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(xBuf, tileLength * sizeof(float));
        pipe.InitBuffer(targetBuf, tileLength * sizeof(float));
        pipe.InitBuffer(numberBuf, BLOCK_BYTES);
        pipe.InitBuffer(partialBuf, MAX_CORES * SLOT_FLOATS * sizeof(float));
        // ReduceSum keeps a value per repeat, ReduceMax an index beside it.
        const uint32_t workBytes = (tileLength / REPEAT_FLOATS + 1) * 2 * sizeof(float);
        pipe.InitBuffer(workBuf, (workBytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES);
        pipe.InitBuffer(resultBuf, BLOCK_BYTES);
    }

    __aicore__ inline void Process()
    {
        AscendC::LocalTensor<float> x = xBuf.Get<float>();
        AscendC::LocalTensor<float> target = targetBuf.Get<float>();
        float sum = 0.0f;
        for (uint64_t offset = 0; offset < this->length; offset += this->tileLength) {
            const uint64_t rest = this->length - offset;
            const uint32_t count = rest < this->tileLength ? rest : this->tileLength;
            Load(x, xGm, this->begin + offset, count);
            Load(target, targetGm, this->begin + offset, count);
            AscendC::Sub(x, x, target, count);
            AscendC::PipeBarrier<PIPE_V>();
            AscendC::Mul(x, x, x, count);
            AscendC::PipeBarrier<PIPE_V>();
            sum += Sum(x, count);
        }
        KeepPartial(AscendC::GetBlockIdx(), sum);
        AscendC::SyncAll();
        if (AscendC::GetBlockIdx() == 0) {
            StoreNumber(0, SumOfPartials(0, AscendC::GetBlockNum()) / static_cast<int64_t>(this->totalLength));
        }
    }

private:
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
    AscendC::TBuf<AscendC::QuePosition::VECCALC> targetBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> numberBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> partialBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> resultBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> workBuf;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<T> targetGm;
    AscendC::GlobalTensor<float> yGm;
    AscendC::GlobalTensor<float> partialGm;
    uint64_t begin;
    uint64_t length;
    uint64_t totalLength;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void mse_loss(GM_ADDR x, GM_ADDR target, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelMseLoss<DTYPE_X> op;
    op.Init(x, target, y, workspace, tilingData);
    op.Process();
}
