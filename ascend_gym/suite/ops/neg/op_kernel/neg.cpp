// Device side of Neg: y = -x; 8-bit integers go through half, which holds all of them.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 2;

template <typename T>
class KernelNeg {
public:
    __aicore__ inline KernelNeg() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const NegTilingData& tiling)
    {
        const uint64_t block = AscendC::GetBlockIdx();
        const uint64_t bigBefore = block < tiling.bigCoreNum ? block : tiling.bigCoreNum;
        const uint64_t begin = block * tiling.smallCoreLength + bigBefore * tiling.unitLength;
        const uint64_t share = tiling.smallCoreLength + (block < tiling.bigCoreNum ? tiling.unitLength : 0);
        const uint64_t rest = tiling.totalLength - begin;
        this->length = rest < share ? rest : share;
        const uint32_t tileLength = tiling.tileLength;
        this->tileLength = tileLength;
        xGm.SetGlobalBuffer((__gm__ T*)x + begin, this->length);
        yGm.SetGlobalBuffer((__gm__ T*)y + begin, this->length);
        pipe.InitBuffer(inQueueX, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(valueBuf, tileLength * sizeof(half));
    }

    __aicore__ inline void Process()
    {
        for (uint64_t offset = 0; offset < this->length; offset += this->tileLength) {
            const uint64_t rest = this->length - offset;
            ProcessTile(offset, rest < this->tileLength ? rest : this->tileLength);
        }
    }

private:
    __aicore__ inline void ProcessTile(uint64_t offset, uint32_t count)
    {
        CopyIn(inQueueX, xGm, offset, count);
        Compute(count);
        CopyOut(outQueueY, yGm, offset, count);
    }

    template <typename U>
    __aicore__ inline void CopyIn(AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM>& queue,
                                  const AscendC::GlobalTensor<U>& source, uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<U> local = queue.template AllocTensor<U>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(U)), 0, 0, 0};
        AscendC::DataCopyPadExtParams<U> padParams{false, 0, 0, 0};
        AscendC::DataCopyPad(local, source[offset], copyParams, padParams);
        queue.EnQue(local);
    }

    __aicore__ inline void Compute(uint32_t count)
    {
        AscendC::LocalTensor<T> xLocal = inQueueX.template DeQue<T>();
        AscendC::LocalTensor<T> yLocal = outQueueY.template AllocTensor<T>();
        if constexpr (std::is_same_v<T, int8_t>) {
            AscendC::LocalTensor<half> value = valueBuf.Get<half>();
            AscendC::Cast(value, xLocal, AscendC::RoundMode::CAST_NONE, count);
            AscendC::PipeBarrier<PIPE_V>();
            AscendC::Muls(value, value, static_cast<half>(-1.0f), count);
            AscendC::PipeBarrier<PIPE_V>();
            AscendC::Cast(yLocal, value, AscendC::RoundMode::CAST_RINT, count);
        } else {
            AscendC::Muls(yLocal, xLocal, static_cast<T>(-1), count);
        }
        outQueueY.EnQue(yLocal);
        inQueueX.FreeTensor(xLocal);
    }

    template <typename U>
    __aicore__ inline void CopyOut(AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM>& queue,
                                   const AscendC::GlobalTensor<U>& target, uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<U> local = queue.template DeQue<U>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(U)), 0, 0, 0};
        AscendC::DataCopyPad(target[offset], local, copyParams);
        queue.FreeTensor(local);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueX;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueY;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> valueBuf;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<T> yGm;
    uint64_t length;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void neg(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelNeg<DTYPE_X> op;
    op.Init(x, y, tilingData);
    op.Process();
}
