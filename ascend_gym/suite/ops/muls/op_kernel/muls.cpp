// Device side of Muls: y = x * value.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

template <typename T>
class KernelMuls {
public:
    __aicore__ inline KernelMuls() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, uint64_t totalLength, uint64_t coreLength, uint32_t tileLength,
                                float value)
    {
        const uint64_t begin = coreLength * AscendC::GetBlockIdx();
        const uint64_t rest = begin < totalLength ? totalLength - begin : 0;
        this->length = rest < coreLength ? rest : coreLength;
        this->tileLength = tileLength;
        this->value = static_cast<T>(value);
        xGm.SetGlobalBuffer((__gm__ T*)x + begin, this->length);
        yGm.SetGlobalBuffer((__gm__ T*)y + begin, this->length);
        pipe.InitBuffer(inQueueX, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(T));
    }

    __aicore__ inline void Process()
    {
        for (uint64_t offset = 0; offset < this->length; offset += this->tileLength) {
            const uint64_t rest = this->length - offset;
            const uint32_t count = rest < this->tileLength ? rest : this->tileLength;
            CopyIn(offset, count);
            AscendC::PipeBarrier<PIPE_ALL>();
            Compute(count);
            AscendC::PipeBarrier<PIPE_ALL>();
            CopyOut(offset, count);
            AscendC::PipeBarrier<PIPE_ALL>();
        }
    }

private:
    __aicore__ inline void CopyIn(uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> xLocal = inQueueX.AllocTensor<T>();
        if (count * sizeof(T) % 32 == 0) {
            AscendC::DataCopy(xLocal, xGm[offset], count);
        } else {
            AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
            AscendC::DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
            AscendC::DataCopyPad(xLocal, xGm[offset], copyParams, padParams);
        }
        inQueueX.EnQue(xLocal);
    }

    __aicore__ inline void Compute(uint32_t count)
    {
        AscendC::LocalTensor<T> xLocal = inQueueX.DeQue<T>();
        AscendC::LocalTensor<T> yLocal = outQueueY.AllocTensor<T>();
        AscendC::Muls(yLocal, xLocal, this->value, count);
        outQueueY.EnQue<T>(yLocal);
        inQueueX.FreeTensor(xLocal);
    }

    __aicore__ inline void CopyOut(uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> yLocal = outQueueY.DeQue<T>();
        if (count * sizeof(T) % 32 == 0) {
            AscendC::DataCopy(yGm[offset], yLocal, count);
        } else {
            AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
            AscendC::DataCopyPad(yGm[offset], yLocal, copyParams);
        }
        outQueueY.FreeTensor(yLocal);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueX;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueY;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<T> yGm;
    uint64_t length;
    uint32_t tileLength;
    T value;
};

extern "C" __global__ __aicore__ void muls(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelMuls<DTYPE_X> op;
    op.Init(x, y, tilingData.totalLength, tilingData.coreLength, tilingData.tileLength, tilingData.value);
    op.Process();
}
