// Device side of Where: y = condition ? x1 : x2. The bytes of the condition become bits by a comparison with zero.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 2;

constexpr uint32_t COMPARE_ELEMS = 128; // 256 bytes of half

template <typename T>
class KernelWhere {
public:
    __aicore__ inline KernelWhere() {}

    __aicore__ inline void Init(GM_ADDR condition, GM_ADDR x1, GM_ADDR x2, GM_ADDR y, const WhereTilingData& tiling)
    {
        const uint64_t block = AscendC::GetBlockIdx();
        const uint64_t bigBefore = block < tiling.bigCoreNum ? block : tiling.bigCoreNum;
        const uint64_t begin = block * tiling.smallCoreLength + bigBefore * tiling.unitLength;
        const uint64_t share = tiling.smallCoreLength + (block < tiling.bigCoreNum ? tiling.unitLength : 0);
        const uint64_t rest = tiling.totalLength - begin;
        this->length = rest < share ? rest : share;
        const uint32_t tileLength = tiling.tileLength;
        this->tileLength = tileLength;
        conditionGm.SetGlobalBuffer((__gm__ uint8_t*)condition + begin, this->length);
        x1Gm.SetGlobalBuffer((__gm__ T*)x1 + begin, this->length);
        x2Gm.SetGlobalBuffer((__gm__ T*)x2 + begin, this->length);
        yGm.SetGlobalBuffer((__gm__ T*)y + begin, this->length);
        pipe.InitBuffer(inQueueCondition, BUFFER_NUM, tileLength * sizeof(uint8_t));
        pipe.InitBuffer(inQueueX1, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(inQueueX2, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(maskBuf, tileLength);
        pipe.InitBuffer(flagBuf, tileLength * sizeof(half));
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
        CopyIn(inQueueCondition, conditionGm, offset, count);
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
        AscendC::LocalTensor<uint8_t> conditionLocal = inQueueCondition.template DeQue<uint8_t>();
        AscendC::LocalTensor<T> x1Local = inQueueX1.template DeQue<T>();
        AscendC::LocalTensor<T> x2Local = inQueueX2.template DeQue<T>();
        AscendC::LocalTensor<T> yLocal = outQueueY.template AllocTensor<T>();
        AscendC::LocalTensor<uint8_t> mask = maskBuf.Get<uint8_t>();
        AscendC::LocalTensor<half> flag = flagBuf.Get<half>();
        const uint32_t compared = (count + COMPARE_ELEMS - 1) / COMPARE_ELEMS * COMPARE_ELEMS;
        AscendC::Cast(flag, conditionLocal, AscendC::RoundMode::CAST_NONE, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::CompareScalar(mask, flag, static_cast<half>(0.0f), AscendC::CMPMODE::NE, compared);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Select(yLocal, mask, x1Local, x2Local, AscendC::SELMODE::VSEL_TENSOR_TENSOR_MODE, count);
        outQueueY.EnQue(yLocal);
        inQueueCondition.FreeTensor(conditionLocal);
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
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueCondition;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueX1;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueX2;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueY;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> maskBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> flagBuf;
    AscendC::GlobalTensor<uint8_t> conditionGm;
    AscendC::GlobalTensor<T> x1Gm;
    AscendC::GlobalTensor<T> x2Gm;
    AscendC::GlobalTensor<T> yGm;
    uint64_t length;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void where(GM_ADDR condition, GM_ADDR x1, GM_ADDR x2, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelWhere<DTYPE_X1> op;
    op.Init(condition, x1, x2, y, tilingData);
    op.Process();
}
