// Device side of Add: y = x1 + x2.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

template <typename T>
class KernelAdd {
public:
    __aicore__ inline KernelAdd() {}

    __aicore__ inline void Init(GM_ADDR x1, GM_ADDR x2, GM_ADDR y, uint64_t totalLength, uint64_t coreLength,
                                uint32_t tileLength)
    {
        const uint64_t begin = coreLength * AscendC::GetBlockIdx();
        const uint64_t rest = begin < totalLength ? totalLength - begin : 0;
        this->length = rest < coreLength ? rest : coreLength;
        this->tileLength = tileLength;
        x1Gm.SetGlobalBuffer((__gm__ T*)x1 + begin, this->length);
        x2Gm.SetGlobalBuffer((__gm__ T*)x2 + begin, this->length);
        yGm.SetGlobalBuffer((__gm__ T*)y + begin, this->length);
        pipe.InitBuffer(inQueueX1, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(inQueueX2, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(T));
    }

    __aicore__ inline void Process()
    {
        for (uint64_t offset = 0; offset < this->length; offset += this->tileLength) {
            const uint64_t rest = this->length - offset;
            const uint32_t count = rest < this->tileLength ? rest : this->tileLength;
            CopyIn(offset, count);
            Compute(count);
            CopyOut(offset, count);
        }
    }

private:
    __aicore__ inline void CopyIn(uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> x1Local = inQueueX1.AllocTensor<T>();
        AscendC::LocalTensor<T> x2Local = inQueueX2.AllocTensor<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
        AscendC::DataCopyPad(x1Local, x1Gm[offset], copyParams, padParams);
        AscendC::DataCopyPad(x2Local, x2Gm[offset], copyParams, padParams);
        inQueueX1.EnQue(x1Local);
        inQueueX2.EnQue(x2Local);
    }

    __aicore__ inline void Compute(uint32_t count)
    {
        AscendC::LocalTensor<T> x1Local = inQueueX1.DeQue<T>();
        AscendC::LocalTensor<T> x2Local = inQueueX2.DeQue<T>();
        AscendC::LocalTensor<T> yLocal = outQueueY.AllocTensor<T>();
        AscendC::Add(yLocal, x1Local, x2Local, count);
        outQueueY.EnQue<T>(yLocal);
        inQueueX1.FreeTensor(x1Local);
        inQueueX2.FreeTensor(x2Local);
    }

    __aicore__ inline void CopyOut(uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> yLocal = outQueueY.DeQue<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPad(yGm[offset], yLocal, copyParams);
        outQueueY.FreeTensor(yLocal);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueX1;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueX2;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueY;
    AscendC::GlobalTensor<T> x1Gm;
    AscendC::GlobalTensor<T> x2Gm;
    AscendC::GlobalTensor<T> yGm;
    uint64_t length;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void add(GM_ADDR x1, GM_ADDR x2, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelAdd<DTYPE_X1> op;
    op.Init(x1, x2, y, tilingData.totalLength, tilingData.coreLength, tilingData.tileLength);
    op.Process();
}
