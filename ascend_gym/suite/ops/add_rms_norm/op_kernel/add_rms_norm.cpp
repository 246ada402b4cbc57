// Device side of AddRmsNorm: x = x1 + x2, y = x / sqrt(mean(x^2) + epsilon) * gamma, computed in float.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

constexpr uint32_t BLOCK_BYTES = 32;
constexpr uint32_t REPEAT_FLOATS = 64;

template <typename T>
class KernelAddRmsNorm {
public:
    __aicore__ inline KernelAddRmsNorm() {}

    __aicore__ inline void Init(GM_ADDR x1, GM_ADDR x2, GM_ADDR gamma, GM_ADDR y, GM_ADDR x, const AddRmsNormTilingData& tiling)
    {
        const uint32_t tileLength = tiling.tileLength;
        const uint32_t block = AscendC::GetBlockIdx();
        const uint32_t bigBefore = block < tiling.bigCoreNum ? block : tiling.bigCoreNum;
        this->firstRow = block * tiling.smallCoreRows + bigBefore;
        this->rowNum = tiling.smallCoreRows + (block < tiling.bigCoreNum ? 1 : 0);
        this->columnNum = tiling.columnNum;
        this->epsilon = tiling.epsilon;
        x1Gm.SetGlobalBuffer((__gm__ T*)x1);
        x2Gm.SetGlobalBuffer((__gm__ T*)x2);
        gammaGm.SetGlobalBuffer((__gm__ T*)gamma);
        yGm.SetGlobalBuffer((__gm__ T*)y);
        xGm.SetGlobalBuffer((__gm__ T*)x);
        pipe.InitBuffer(inQueue, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueue, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(sumBuf, tileLength * sizeof(float));
        pipe.InitBuffer(otherBuf, tileLength * sizeof(float));
        pipe.InitBuffer(gammaBuf, tileLength * sizeof(float));
        // ReduceSum keeps a value per repeat, ReduceMax an index beside it.
        const uint32_t workBytes = (tileLength / REPEAT_FLOATS + 1) * 2 * sizeof(float);
        pipe.InitBuffer(workBuf, (workBytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES);
        pipe.InitBuffer(resultBuf, BLOCK_BYTES);
    }

    __aicore__ inline void Process()
    {
        AscendC::LocalTensor<float> x = sumBuf.Get<float>();
        AscendC::LocalTensor<float> other = otherBuf.Get<float>();
        Load(gammaBuf.Get<float>(), gammaGm, 0, this->columnNum);
        for (uint32_t row = 0; row < this->rowNum; row++) {
            const uint64_t offset = static_cast<uint64_t>(this->firstRow + row) * this->columnNum;
            Load(x, x1Gm, offset, this->columnNum);
            Load(other, x2Gm, offset, this->columnNum);
            AscendC::Add(x, x, other, this->columnNum);
            AscendC::PipeBarrier<PIPE_V>();
            Store(xGm, offset, x, this->columnNum);
            AscendC::Mul(other, x, x, this->columnNum);
            AscendC::PipeBarrier<PIPE_V>();
            const float factor = 1.0f / sqrt(Sum(other, this->columnNum) / static_cast<int32_t>(this->columnNum) + this->epsilon);
            AscendC::Muls(x, x, factor, this->columnNum);
            AscendC::PipeBarrier<PIPE_V>();
            AscendC::Mul(x, x, gammaBuf.Get<float>(), this->columnNum);
            AscendC::PipeBarrier<PIPE_V>();
            Store(yGm, offset, x, this->columnNum);
        }
    }

private:
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

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueue;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueue;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> sumBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> otherBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> gammaBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> resultBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> workBuf;
    AscendC::GlobalTensor<T> x1Gm;
    AscendC::GlobalTensor<T> x2Gm;
    AscendC::GlobalTensor<T> gammaGm;
    AscendC::GlobalTensor<T> yGm;
    AscendC::GlobalTensor<T> xGm;
    uint32_t firstRow;
    uint32_t rowNum;
    uint32_t columnNum;
    float epsilon;
};

extern "C" __global__ __aicore__ void add_rms_norm(GM_ADDR x1, GM_ADDR x2, GM_ADDR gamma, GM_ADDR y, GM_ADDR x, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelAddRmsNorm<DTYPE_X1> op;
    op.Init(x1, x2, gamma, y, x, tilingData);
    op.Process();
}
