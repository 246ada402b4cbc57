// Device side of SgdMomentum: accum = momentum * accum + grad, var = var - lr * accum; both in place.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

template <typename T>
class KernelSgdMomentum {
public:
    __aicore__ inline KernelSgdMomentum() {}

    __aicore__ inline void Init(GM_ADDR var, GM_ADDR accum, GM_ADDR grad, GM_ADDR var_ref, GM_ADDR accum_ref, const SgdMomentumTilingData& tiling)
    {
        const uint64_t block = AscendC::GetBlockIdx();
        const uint64_t bigBefore = block < tiling.bigCoreNum ? block : tiling.bigCoreNum;
        const uint64_t begin = block * tiling.smallCoreLength + bigBefore * tiling.unitLength;
        const uint64_t share = tiling.smallCoreLength + (block < tiling.bigCoreNum ? tiling.unitLength : 0);
        const uint64_t rest = tiling.totalLength - begin;
        this->length = rest < share ? rest : share;
        const uint32_t tileLength = tiling.tileLength;
        this->tileLength = tileLength;
        this->lr = tiling.lr;
        this->momentum = tiling.momentum;
        varGm.SetGlobalBuffer((__gm__ float*)var + begin, this->length);
        accumGm.SetGlobalBuffer((__gm__ float*)accum + begin, this->length);
        gradGm.SetGlobalBuffer((__gm__ float*)grad + begin, this->length);
        varRefGm.SetGlobalBuffer((__gm__ float*)var_ref + begin, this->length);
        accumRefGm.SetGlobalBuffer((__gm__ float*)accum_ref + begin, this->length);
        pipe.InitBuffer(inQueueVar, BUFFER_NUM, tileLength * sizeof(float));
        pipe.InitBuffer(inQueueAccum, BUFFER_NUM, tileLength * sizeof(float));
        pipe.InitBuffer(inQueueGrad, BUFFER_NUM, tileLength * sizeof(float));
        pipe.InitBuffer(outQueueVarRef, BUFFER_NUM, tileLength * sizeof(float));
        pipe.InitBuffer(outQueueAccumRef, BUFFER_NUM, tileLength * sizeof(float));
        pipe.InitBuffer(stepBuf, tileLength * sizeof(float));
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
        CopyIn(inQueueVar, varGm, offset, count);
        CopyIn(inQueueAccum, accumGm, offset, count);
        CopyIn(inQueueGrad, gradGm, offset, count);
        Compute(count);
        CopyOut(outQueueVarRef, varRefGm, offset, count);
        CopyOut(outQueueAccumRef, accumRefGm, offset, count);
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
        AscendC::LocalTensor<float> varLocal = inQueueVar.template DeQue<float>();
        AscendC::LocalTensor<float> accumLocal = inQueueAccum.template DeQue<float>();
        AscendC::LocalTensor<float> gradLocal = inQueueGrad.template DeQue<float>();
        AscendC::LocalTensor<float> varRefLocal = outQueueVarRef.template AllocTensor<float>();
        AscendC::LocalTensor<float> accumRefLocal = outQueueAccumRef.template AllocTensor<float>();
        AscendC::LocalTensor<float> step = stepBuf.Get<float>();
        AscendC::Muls(accumRefLocal, accumLocal, this->momentum, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Add(accumRefLocal, accumRefLocal, gradLocal, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Muls(step, accumRefLocal, this->lr, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Sub(varRefLocal, varLocal, step, count);
        outQueueVarRef.EnQue(varRefLocal);
        outQueueAccumRef.EnQue(accumRefLocal);
        inQueueVar.FreeTensor(varLocal);
        inQueueAccum.FreeTensor(accumLocal);
        inQueueGrad.FreeTensor(gradLocal);
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
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueVar;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueAccum;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueGrad;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueVarRef;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueAccumRef;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> stepBuf;
    AscendC::GlobalTensor<float> varGm;
    AscendC::GlobalTensor<float> accumGm;
    AscendC::GlobalTensor<float> gradGm;
    AscendC::GlobalTensor<float> varRefGm;
    AscendC::GlobalTensor<float> accumRefGm;
    uint64_t length;
    uint32_t tileLength;
    float lr;
    float momentum;
};

extern "C" __global__ __aicore__ void sgd_momentum(GM_ADDR var, GM_ADDR accum, GM_ADDR grad, GM_ADDR var_ref, GM_ADDR accum_ref, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelSgdMomentum<float> op;
    op.Init(var, accum, grad, var_ref, accum_ref, tilingData);
    op.Process();
}
