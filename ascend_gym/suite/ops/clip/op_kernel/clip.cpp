// Device side of Clip: y = min(max(x, low), high).
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

template <typename T>
class KernelClip {
public:
    __aicore__ inline KernelClip() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const ClipTilingData& tiling)
    {
        const uint64_t block = AscendC::GetBlockIdx();
        const uint64_t bigBefore = block < tiling.bigCoreNum ? block : tiling.bigCoreNum;
        const uint64_t begin = block * tiling.smallCoreLength + bigBefore * tiling.unitLength;
        const uint64_t share = tiling.smallCoreLength + (block < tiling.bigCoreNum ? tiling.unitLength : 0);
        const uint64_t rest = tiling.totalLength - begin;
        this->length = rest < share ? rest : share;
        const uint32_t tileLength = tiling.tileLength;
        this->tileLength = tileLength;
        this->low = tiling.low;
        this->high = tiling.high;
        xGm.SetGlobalBuffer((__gm__ T*)x + begin, this->length);
        yGm.SetGlobalBuffer((__gm__ T*)y + begin, this->length);
        pipe.InitBuffer(inQueueX, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(T));
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
        AscendC::Maxs(yLocal, xLocal, static_cast<T>(this->low), count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Mins(yLocal, yLocal, static_cast<T>(this->high), count);
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
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<T> yGm;
    uint64_t length;
    uint32_t tileLength;
    float low;
    float high;
};

extern "C" __global__ __aicore__ void clip(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelClip<DTYPE_X> op;
    op.Init(x, y, tilingData);
    op.Process();
}
