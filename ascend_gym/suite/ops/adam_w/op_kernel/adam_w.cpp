// Device side of AdamW: one step of AdamW on weights, means and mean squares of gradients.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

template <typename T>
class KernelAdamW {
public:
    __aicore__ inline KernelAdamW() {}

    __aicore__ inline void Init(GM_ADDR var, GM_ADDR m, GM_ADDR v, GM_ADDR grad, GM_ADDR var_out, GM_ADDR m_out, GM_ADDR v_out, const AdamWTilingData& tiling)
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
        this->beta1 = tiling.beta1;
        this->beta2 = tiling.beta2;
        this->epsilon = tiling.epsilon;
        this->weightDecay = tiling.weightDecay;
        this->step = tiling.step;
        varGm.SetGlobalBuffer((__gm__ float*)var + begin, this->length);
        mGm.SetGlobalBuffer((__gm__ float*)m + begin, this->length);
        vGm.SetGlobalBuffer((__gm__ float*)v + begin, this->length);
        gradGm.SetGlobalBuffer((__gm__ float*)grad + begin, this->length);
        varOutGm.SetGlobalBuffer((__gm__ float*)var_out + begin, this->length);
        mOutGm.SetGlobalBuffer((__gm__ float*)m_out + begin, this->length);
        vOutGm.SetGlobalBuffer((__gm__ float*)v_out + begin, this->length);
        pipe.InitBuffer(inQueueVar, BUFFER_NUM, tileLength * sizeof(float));
        pipe.InitBuffer(inQueueM, BUFFER_NUM, tileLength * sizeof(float));
        pipe.InitBuffer(inQueueV, BUFFER_NUM, tileLength * sizeof(float));
        pipe.InitBuffer(inQueueGrad, BUFFER_NUM, tileLength * sizeof(float));
        pipe.InitBuffer(outQueueVarOut, BUFFER_NUM, tileLength * sizeof(float));
        pipe.InitBuffer(outQueueMOut, BUFFER_NUM, tileLength * sizeof(float));
        pipe.InitBuffer(outQueueVOut, BUFFER_NUM, tileLength * sizeof(float));
        pipe.InitBuffer(rootBuf, tileLength * sizeof(float));
        pipe.InitBuffer(termBuf, tileLength * sizeof(float));
        this->meanCorrection = 1.0f - Power(this->beta1, this->step);
        this->squareCorrection = 1.0f - Power(this->beta2, this->step);
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
        CopyIn(inQueueM, mGm, offset, count);
        CopyIn(inQueueV, vGm, offset, count);
        CopyIn(inQueueGrad, gradGm, offset, count);
        Compute(count);
        CopyOut(outQueueVarOut, varOutGm, offset, count);
        CopyOut(outQueueMOut, mOutGm, offset, count);
        CopyOut(outQueueVOut, vOutGm, offset, count);
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
        AscendC::LocalTensor<float> mLocal = inQueueM.template DeQue<float>();
        AscendC::LocalTensor<float> vLocal = inQueueV.template DeQue<float>();
        AscendC::LocalTensor<float> gradLocal = inQueueGrad.template DeQue<float>();
        AscendC::LocalTensor<float> varOutLocal = outQueueVarOut.template AllocTensor<float>();
        AscendC::LocalTensor<float> mOutLocal = outQueueMOut.template AllocTensor<float>();
        AscendC::LocalTensor<float> vOutLocal = outQueueVOut.template AllocTensor<float>();
        AscendC::LocalTensor<float> root = rootBuf.Get<float>();
        AscendC::LocalTensor<float> term = termBuf.Get<float>();
        // mOut = beta1 * m + (1 - beta1) * grad
        AscendC::Muls(mOutLocal, mLocal, this->beta1, count);
        AscendC::Muls(term, gradLocal, 1.0f - this->beta1, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Add(mOutLocal, mOutLocal, term, count);
        AscendC::PipeBarrier<PIPE_V>();
        // vOut = beta2 * v + (1 - beta2) * grad * grad
        AscendC::Mul(term, gradLocal, gradLocal, count);
        AscendC::Muls(vOutLocal, vLocal, this->beta2, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Muls(term, term, 1.0f - this->beta2, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Add(vOutLocal, vOutLocal, term, count);
        AscendC::PipeBarrier<PIPE_V>();
        // varOut = var * (1 - lr * weightDecay) - lr * (mOut / meanCorrection) / (sqrt(vOut / squareCorrection) + epsilon)
        AscendC::Muls(root, vOutLocal, 1.0f / this->squareCorrection, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Sqrt(root, root, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Adds(root, root, this->epsilon, count);
        AscendC::Muls(term, mOutLocal, this->lr / this->meanCorrection, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Div(term, term, root, count);
        AscendC::Muls(varOutLocal, varLocal, 1.0f - this->lr * this->weightDecay, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Sub(varOutLocal, varOutLocal, term, count);
        outQueueVarOut.EnQue(varOutLocal);
        outQueueMOut.EnQue(mOutLocal);
        outQueueVOut.EnQue(vOutLocal);
        inQueueVar.FreeTensor(varLocal);
        inQueueM.FreeTensor(mLocal);
        inQueueV.FreeTensor(vLocal);
        inQueueGrad.FreeTensor(gradLocal);
    }

    __aicore__ inline float Power(float base, int32_t exponent)
    {
        float power = 1.0f;
        for (int32_t i = 0; i < exponent; i++) {
            power *= base;
        }
        return power;
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
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueM;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueV;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueGrad;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueVarOut;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueMOut;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueVOut;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> rootBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> termBuf;
    AscendC::GlobalTensor<float> varGm;
    AscendC::GlobalTensor<float> mGm;
    AscendC::GlobalTensor<float> vGm;
    AscendC::GlobalTensor<float> gradGm;
    AscendC::GlobalTensor<float> varOutGm;
    AscendC::GlobalTensor<float> mOutGm;
    AscendC::GlobalTensor<float> vOutGm;
    uint64_t length;
    uint32_t tileLength;
    float lr;
    float beta1;
    float beta2;
    float epsilon;
    float weightDecay;
    int32_t step;
    float meanCorrection;
    float squareCorrection;
};

extern "C" __global__ __aicore__ void adam_w(GM_ADDR var, GM_ADDR m, GM_ADDR v, GM_ADDR grad, GM_ADDR var_out, GM_ADDR m_out, GM_ADDR v_out, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelAdamW<float> op;
    op.Init(var, m, v, grad, var_out, m_out, v_out, tilingData);
    op.Process();
}
