// Device side of IsInf: y = |x| == infinity, one byte an element.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

constexpr uint32_t COMPARE_ELEMS = 128; // 256 bytes of two-byte elements, 512 of four-byte ones

template <typename T>
class KernelIsInf {
public:
    __aicore__ inline KernelIsInf() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const IsInfTilingData& tiling)
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
        yGm.SetGlobalBuffer((__gm__ uint8_t*)y + begin, this->length);
        pipe.InitBuffer(inQueueX, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(uint8_t));
        pipe.InitBuffer(maskBuf, tileLength);
        pipe.InitBuffer(flagBuf, tileLength * sizeof(half));
        pipe.InitBuffer(oneBuf, tileLength * sizeof(half));
        pipe.InitBuffer(absBuf, tileLength * sizeof(T));
        AscendC::Duplicate(oneBuf.Get<half>(), static_cast<half>(1.0f), tileLength);
        // What a comparison takes beyond the tile is there, too.
        AscendC::Duplicate(absBuf.Get<T>(), static_cast<T>(0.0f), tileLength);
        if constexpr (std::is_same_v<T, half>) {
            const uint16_t bits = 0x7C00;
            this->infinity = *reinterpret_cast<const half*>(&bits);
        } else {
            const uint32_t bits = 0x7F800000;
            this->infinity = *reinterpret_cast<const float*>(&bits);
        }
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
        AscendC::LocalTensor<uint8_t> yLocal = outQueueY.template AllocTensor<uint8_t>();
        AscendC::LocalTensor<uint8_t> mask = maskBuf.Get<uint8_t>();
        AscendC::LocalTensor<half> flag = flagBuf.Get<half>();
        AscendC::LocalTensor<T> magnitude = absBuf.Get<T>();
        const uint32_t compared = (count + COMPARE_ELEMS - 1) / COMPARE_ELEMS * COMPARE_ELEMS;
        AscendC::Abs(magnitude, xLocal, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::CompareScalar(mask, magnitude, this->infinity, AscendC::CMPMODE::EQ, compared);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Select(flag, mask, oneBuf.Get<half>(), static_cast<half>(0.0f), AscendC::SELMODE::VSEL_TENSOR_SCALAR_MODE,
                        compared);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Cast(yLocal, flag, AscendC::RoundMode::CAST_RINT, count);
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
    AscendC::TBuf<AscendC::QuePosition::VECCALC> maskBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> flagBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> oneBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> absBuf;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<uint8_t> yGm;
    uint64_t length;
    uint32_t tileLength;
    T infinity;
};

extern "C" __global__ __aicore__ void is_inf(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelIsInf<DTYPE_X> op;
    op.Init(x, y, tilingData);
    op.Process();
}
