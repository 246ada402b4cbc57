// Device side of Exp: y = exp(x), computed in float.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 2;

template <typename T>
class KernelExp {
public:
    __aicore__ inline KernelExp() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, uint64_t totalLength, uint64_t coreLength, uint32_t tileLength)
    {
        const uint64_t begin = coreLength * AscendC::GetBlockIdx();
        const uint64_t rest = begin < totalLength ? totalLength - begin : 0;
        this->length = rest < coreLength ? rest : coreLength;
        this->tileLength = tileLength;
        xGm.SetGlobalBuffer((__gm__ T*)x + begin, this->length);
        yGm.SetGlobalBuffer((__gm__ T*)y + begin, this->length);
        pipe.InitBuffer(inQueueX, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(T));
        if constexpr (std::is_same_v<T, half>) {
            pipe.InitBuffer(floatBuf, tileLength * sizeof(float));
        }
    }

    __aicore__ inline void Process()
    {
        const uint64_t fullTiles = this->length / this->tileLength;
        for (uint64_t i = 0; i < fullTiles; i++) {
            ProcessTile(i * this->tileLength, this->tileLength);
        }
        const uint32_t tail = this->length % this->tileLength;
        if (tail > 0) {
            ProcessTile(fullTiles * this->tileLength, tail);
        }
    }

private:
    __aicore__ inline void ProcessTile(uint64_t offset, uint32_t count)
    {
        CopyIn(offset, count);
        Compute(count);
        CopyOut(offset, count);
    }

    __aicore__ inline void CopyIn(uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> xLocal = inQueueX.AllocTensor<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
        AscendC::DataCopyPad(xLocal, xGm[offset], copyParams, padParams);
        inQueueX.EnQue(xLocal);
    }

    __aicore__ inline void Compute(uint32_t count)
    {
        AscendC::LocalTensor<T> xLocal = inQueueX.DeQue<T>();
        AscendC::LocalTensor<T> yLocal = outQueueY.AllocTensor<T>();
        if constexpr (std::is_same_v<T, half>) {
            AscendC::LocalTensor<float> xFloat = floatBuf.Get<float>();
            AscendC::Cast(xFloat, xLocal, AscendC::RoundMode::CAST_NONE, count);
            AscendC::PipeBarrier<PIPE_ALL>();
            AscendC::Exp(xFloat, xFloat, count);
            AscendC::PipeBarrier<PIPE_ALL>();
            AscendC::Cast(yLocal, xFloat, AscendC::RoundMode::CAST_RINT, count);
        } else {
            AscendC::Exp(yLocal, xLocal, count);
        }
        outQueueY.EnQue<T>(yLocal);
        inQueueX.FreeTensor(xLocal);
    }

    __aicore__ inline void CopyOut(uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> yLocal = outQueueY.DeQue<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPad(yGm[offset], yLocal, copyParams);
        outQueueY.FreeTensor(yLocal);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueX;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueY;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> floatBuf;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<T> yGm;
    uint64_t length;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void exp(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelExp<DTYPE_X> op;
    op.Init(x, y, tilingData.totalLength, tilingData.coreLength, tilingData.tileLength);
    op.Process();
}
