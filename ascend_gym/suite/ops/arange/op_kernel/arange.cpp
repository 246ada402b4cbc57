// Device side of Arange: y[i] = start + i * step. The offsets within a tile are computed once for a core.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

template <typename T>
class KernelArange {
public:
    __aicore__ inline KernelArange() {}

    __aicore__ inline void Init(GM_ADDR start, GM_ADDR step, GM_ADDR y, const ArangeTilingData& tiling)
    {
        const uint32_t tileLength = tiling.tileLength;
        this->totalLength = tiling.totalLength;
        this->tileLength = tileLength;
        startGm.SetGlobalBuffer((__gm__ T*)start, 1);
        stepGm.SetGlobalBuffer((__gm__ T*)step, 1);
        yGm.SetGlobalBuffer((__gm__ T*)y, tiling.totalLength);
        pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(offsetBuf, tileLength * sizeof(T));
    }

    __aicore__ inline void Process()
    {
        const T start = startGm.GetValue(0);
        const T step = stepGm.GetValue(0);
        AscendC::LocalTensor<T> offsets = offsetBuf.Get<T>();
        AscendC::CreateVecIndex(offsets, static_cast<T>(0), this->tileLength);
        AscendC::PipeBarrier<PIPE_V>();
        const uint64_t stride = static_cast<uint64_t>(AscendC::GetBlockNum()) * this->tileLength;
        uint64_t begin = static_cast<uint64_t>(AscendC::GetBlockIdx()) * this->tileLength;
        for (; begin < this->totalLength; begin += stride) {
            const uint64_t rest = this->totalLength - begin;
            const uint32_t count = rest < this->tileLength ? rest : this->tileLength;
            Compute(static_cast<T>(static_cast<int64_t>(begin)), start, step, count);
            CopyOut(begin, count);
        }
    }

private:
    __aicore__ inline void Compute(T begin, T start, T step, uint32_t count)
    {
        AscendC::LocalTensor<T> yLocal = outQueueY.template AllocTensor<T>();
        AscendC::Adds(yLocal, offsetBuf.Get<T>(), begin, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Muls(yLocal, yLocal, step, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Adds(yLocal, yLocal, start, count);
        outQueueY.EnQue(yLocal);
    }

    __aicore__ inline void CopyOut(uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> yLocal = outQueueY.template DeQue<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPad(yGm[offset], yLocal, copyParams);
        outQueueY.FreeTensor(yLocal);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueY;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> offsetBuf;
    AscendC::GlobalTensor<T> startGm;
    AscendC::GlobalTensor<T> stepGm;
    AscendC::GlobalTensor<T> yGm;
    uint64_t totalLength;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void arange(GM_ADDR start, GM_ADDR step, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelArange<DTYPE_START> op;
    op.Init(start, step, y, tilingData);
    op.Process();
}
