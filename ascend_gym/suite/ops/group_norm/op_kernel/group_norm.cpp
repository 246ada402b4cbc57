// Device side of GroupNorm: the channels of each group are normalised together, then scaled and shifted each by itself, in float.
// A group is read three times: for its mean, for its variance, and channel by channel for its output.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

constexpr uint32_t BLOCK_BYTES = 32;
constexpr uint32_t REPEAT_FLOATS = 64;

template <typename T>
class KernelGroupNorm {
public:
    __aicore__ inline KernelGroupNorm() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR gamma, GM_ADDR beta, GM_ADDR y, const GroupNormTilingData& tiling)
    {
        const uint32_t tileLength = tiling.tileLength;
        const uint32_t block = AscendC::GetBlockIdx();
        const uint32_t bigBefore = block < tiling.bigCoreNum ? block : tiling.bigCoreNum;
        this->firstRow = block * tiling.smallCoreRows + bigBefore;
        this->rowNum = tiling.smallCoreRows + (block < tiling.bigCoreNum ? 1 : 0);
        this->groupNum = tiling.groupNum;
        this->groupChannels = tiling.groupChannels;
        this->channelLength = tiling.channelLength;
        this->tileLength = tileLength;
        this->epsilon = tiling.epsilon;
        xGm.SetGlobalBuffer((__gm__ T*)x);
        gammaGm.SetGlobalBuffer((__gm__ T*)gamma);
        betaGm.SetGlobalBuffer((__gm__ T*)beta);
        yGm.SetGlobalBuffer((__gm__ T*)y);
        pipe.InitBuffer(inQueue, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueue, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(xBuf, tileLength * sizeof(float));
        // ReduceSum keeps a value per repeat, ReduceMax an index beside it.
        const uint32_t workBytes = (tileLength / REPEAT_FLOATS + 1) * 2 * sizeof(float);
        pipe.InitBuffer(workBuf, (workBytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES);
        pipe.InitBuffer(resultBuf, BLOCK_BYTES);
    }

    __aicore__ inline void Process()
    {
        const uint64_t groupLength = static_cast<uint64_t>(this->groupChannels) * this->channelLength;
        for (uint32_t group = this->firstRow; group < this->firstRow + this->rowNum; group++) {
            const uint64_t offset = group * groupLength;
            const float mean = MeanOfPowers(offset, groupLength, 0.0f, false);
            const float variance = MeanOfPowers(offset, groupLength, mean, true);
            const float rstd = 1.0f / sqrt(variance + this->epsilon);
            const uint32_t firstChannel = group % this->groupNum * this->groupChannels;
            for (uint32_t channel = 0; channel < this->groupChannels; channel++) {
                const float scale = rstd * static_cast<float>(gammaGm.GetValue(firstChannel + channel));
                const float shift = static_cast<float>(betaGm.GetValue(firstChannel + channel)) - mean * scale;
                ScaleChannel(offset + static_cast<uint64_t>(channel) * this->channelLength, scale, shift);
            }
        }
    }

private:
    // The mean of the elements around a centre, or of their squares.
    __aicore__ inline float MeanOfPowers(uint64_t offset, uint64_t length, float centre, bool squares)
    {
        AscendC::LocalTensor<float> x = xBuf.Get<float>();
        float sum = 0.0f;
        for (uint64_t begin = 0; begin < length; begin += this->tileLength) {
            const uint64_t rest = length - begin;
            const uint32_t count = rest < this->tileLength ? rest : this->tileLength;
            Load(x, xGm, offset + begin, count);
            if (squares) {
                AscendC::Adds(x, x, -centre, count);
                AscendC::PipeBarrier<PIPE_V>();
                AscendC::Mul(x, x, x, count);
                AscendC::PipeBarrier<PIPE_V>();
            }
            sum += Sum(x, count);
        }
        return sum / static_cast<int64_t>(length);
    }

    __aicore__ inline void ScaleChannel(uint64_t offset, float scale, float shift)
    {
        AscendC::LocalTensor<float> x = xBuf.Get<float>();
        for (uint32_t begin = 0; begin < this->channelLength; begin += this->tileLength) {
            const uint32_t rest = this->channelLength - begin;
            const uint32_t count = rest < this->tileLength ? rest : this->tileLength;
            Load(x, xGm, offset + begin, count);
            AscendC::Muls(x, x, scale, count);
            AscendC::PipeBarrier<PIPE_V>();
            AscendC::Adds(x, x, shift, count);
            AscendC::PipeBarrier<PIPE_V>();
            Store(yGm, offset + begin, x, count);
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

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueue;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueue;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> xBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> resultBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> workBuf;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<T> gammaGm;
    AscendC::GlobalTensor<T> betaGm;
    AscendC::GlobalTensor<T> yGm;
    uint32_t firstRow;
    uint32_t rowNum;
    uint32_t groupNum;
    uint32_t groupChannels;
    uint32_t channelLength;
    uint32_t tileLength;
    float epsilon;
};

extern "C" __global__ __aicore__ void group_norm(GM_ADDR x, GM_ADDR gamma, GM_ADDR beta, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelGroupNorm<DTYPE_X> op;
    op.Init(x, gamma, beta, y, tilingData);
    op.Process();
}
