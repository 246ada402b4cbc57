// Device side of Rope: rotary position embedding: y = x * cos + rotated(x) * sin for each head of each token, where
// rotated(x) is the second half of a head, negated, and then its first half. Computed in float.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

template <typename T>
class KernelRope {
public:
    __aicore__ inline KernelRope() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR cos, GM_ADDR sin, GM_ADDR y, const RopeTilingData& tiling)
    {
        const uint32_t block = AscendC::GetBlockIdx();
        const uint32_t bigBefore = block < tiling.bigCoreNum ? block : tiling.bigCoreNum;
        this->firstRow = block * tiling.smallCoreRows + bigBefore;
        this->rowNum = tiling.smallCoreRows + (block < tiling.bigCoreNum ? 1 : 0);
        this->sequenceLength = tiling.sequenceLength;
        this->headNum = tiling.headNum;
        this->headLength = tiling.headLength;
        const uint32_t tokenLength = tiling.headNum * tiling.headLength;
        xGm.SetGlobalBuffer((__gm__ T*)x);
        cosGm.SetGlobalBuffer((__gm__ float*)cos);
        sinGm.SetGlobalBuffer((__gm__ float*)sin);
        yGm.SetGlobalBuffer((__gm__ T*)y);
        pipe.InitBuffer(inQueue, BUFFER_NUM, tokenLength * sizeof(T));
        pipe.InitBuffer(angleQueue, 2, tiling.headLength * sizeof(float));
        pipe.InitBuffer(outQueue, BUFFER_NUM, tokenLength * sizeof(T));
        pipe.InitBuffer(xBuf, tokenLength * sizeof(float));
        pipe.InitBuffer(rotatedBuf, tokenLength * sizeof(float));
    }

    __aicore__ inline void Process()
    {
        const uint32_t tokenLength = this->headNum * this->headLength;
        AscendC::LocalTensor<float> x = xBuf.Get<float>();
        for (uint32_t token = this->firstRow; token < this->firstRow + this->rowNum; token++) {
            const uint64_t offset = static_cast<uint64_t>(token) * tokenLength;
            const uint32_t position = token % this->sequenceLength;
            LoadAngles(cosGm[position * this->headLength]);
            LoadAngles(sinGm[position * this->headLength]);
            Load(x, xGm, offset, tokenLength);
            AscendC::LocalTensor<float> cosLocal = angleQueue.DeQue<float>();
            AscendC::LocalTensor<float> sinLocal = angleQueue.DeQue<float>();
            for (uint32_t head = 0; head < this->headNum; head++) {
                RotateHead(head * this->headLength, cosLocal, sinLocal);
            }
            angleQueue.FreeTensor(cosLocal);
            angleQueue.FreeTensor(sinLocal);
            Store(yGm, offset, x, tokenLength);
        }
    }

private:
    __aicore__ inline void LoadAngles(const AscendC::GlobalTensor<float>& source)
    {
        AscendC::LocalTensor<float> local = angleQueue.AllocTensor<float>();
        AscendC::DataCopy(local, source, this->headLength);
        angleQueue.EnQue(local);
    }

    __aicore__ inline void RotateHead(uint32_t begin, const AscendC::LocalTensor<float>& cosLocal,
                                      const AscendC::LocalTensor<float>& sinLocal)
    {
        const uint32_t middle = this->headLength / 2;
        AscendC::LocalTensor<float> x = xBuf.Get<float>()[begin];
        AscendC::LocalTensor<float> rotated = rotatedBuf.Get<float>()[begin];
        AscendC::Muls(rotated, x[middle], -1.0f, middle);
        AscendC::Muls(rotated[middle], x, 1.0f, middle);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Mul(rotated, rotated, sinLocal, this->headLength);
        AscendC::Mul(x, x, cosLocal, this->headLength);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Add(x, x, rotated, this->headLength);
        AscendC::PipeBarrier<PIPE_V>();
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

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueue;
    AscendC::TQue<AscendC::QuePosition::VECIN, 2> angleQueue;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueue;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> xBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> rotatedBuf;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<float> cosGm;
    AscendC::GlobalTensor<float> sinGm;
    AscendC::GlobalTensor<T> yGm;
    uint32_t firstRow;
    uint32_t rowNum;
    uint32_t sequenceLength;
    uint32_t headNum;
    uint32_t headLength;
};

extern "C" __global__ __aicore__ void rope(GM_ADDR x, GM_ADDR cos, GM_ADDR sin, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelRope<DTYPE_X> op;
    op.Init(x, cos, sin, y, tilingData);
    op.Process();
}
