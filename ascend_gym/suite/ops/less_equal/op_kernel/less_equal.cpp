// Device side of LessEqual: y = x1 <= x2, one byte an element. Comparisons give bits, which select ones or zeros.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

constexpr uint32_t COMPARE_ELEMS = 128; // 256 bytes of two-byte elements, 512 of four-byte ones

template <typename T>
class KernelLessEqual {
public:
    __aicore__ inline KernelLessEqual() {}

    __aicore__ inline void Init(GM_ADDR x1, GM_ADDR x2, GM_ADDR y, const LessEqualTilingData& tiling)
    {
        const uint64_t block = AscendC::GetBlockIdx();
        const uint64_t bigBefore = block < tiling.bigCoreNum ? block : tiling.bigCoreNum;
        const uint64_t begin = block * tiling.smallCoreLength + bigBefore * tiling.unitLength;
        const uint64_t share = tiling.smallCoreLength + (block < tiling.bigCoreNum ? tiling.unitLength : 0);
        const uint64_t rest = tiling.totalLength - begin;
        this->length = rest < share ? rest : share;
        const uint32_t tileLength = tiling.tileLength;
        this->tileLength = tileLength;
        x1Gm.SetGlobalBuffer((__gm__ T*)x1 + begin, this->length);
        x2Gm.SetGlobalBuffer((__gm__ T*)x2 + begin, this->length);
        yGm.SetGlobalBuffer((__gm__ uint8_t*)y + begin, this->length);
        pipe.InitBuffer(inQueueX1, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(inQueueX2, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(uint8_t));
        pipe.InitBuffer(maskBuf, tileLength);
        pipe.InitBuffer(flagBuf, tileLength * sizeof(half));
        pipe.InitBuffer(oneBuf, tileLength * sizeof(half));
        pipe.InitBuffer(lessBuf, tileLength * sizeof(T));
        AscendC::Duplicate(oneBuf.Get<half>(), static_cast<half>(1.0f), tileLength);
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
        CopyIn(inQueueX1, x1Gm, offset, count);
        CopyIn(inQueueX2, x2Gm, offset, count);
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
        AscendC::LocalTensor<T> x1Local = inQueueX1.template DeQue<T>();
        AscendC::LocalTensor<T> x2Local = inQueueX2.template DeQue<T>();
        AscendC::LocalTensor<uint8_t> yLocal = outQueueY.template AllocTensor<uint8_t>();
        AscendC::LocalTensor<uint8_t> mask = maskBuf.Get<uint8_t>();
        AscendC::LocalTensor<half> flag = flagBuf.Get<half>();
        // Whole repeats are compared; what lies beyond the tile is not written back.
        const uint32_t compared = (count + COMPARE_ELEMS - 1) / COMPARE_ELEMS * COMPARE_ELEMS;
        if constexpr (std::is_same_v<T, int32_t>) {
            // 32-bit integers are compared for equality only: x1 <= x2 where the smaller of both is x1.
            AscendC::LocalTensor<T> less = lessBuf.Get<T>();
            AscendC::Min(less, x1Local, x2Local, compared);
            AscendC::PipeBarrier<PIPE_V>();
            AscendC::Compare(mask, less, x1Local, AscendC::CMPMODE::EQ, compared);
        } else {
            AscendC::Compare(mask, x1Local, x2Local, AscendC::CMPMODE::LE, compared);
        }
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Select(flag, mask, oneBuf.Get<half>(), static_cast<half>(0.0f), AscendC::SELMODE::VSEL_TENSOR_SCALAR_MODE,
                        compared);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Cast(yLocal, flag, AscendC::RoundMode::CAST_RINT, count);
        outQueueY.EnQue(yLocal);
        inQueueX1.FreeTensor(x1Local);
        inQueueX2.FreeTensor(x2Local);
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
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueX1;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueX2;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueY;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> maskBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> flagBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> oneBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> lessBuf;
    AscendC::GlobalTensor<T> x1Gm;
    AscendC::GlobalTensor<T> x2Gm;
    AscendC::GlobalTensor<uint8_t> yGm;
    uint64_t length;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void less_equal(GM_ADDR x1, GM_ADDR x2, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelLessEqual<DTYPE_X1> op;
    op.Init(x1, x2, y, tilingData);
    op.Process();
}
