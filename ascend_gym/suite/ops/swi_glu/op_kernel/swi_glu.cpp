// Device side of SwiGlu: y = silu(a) * b, where a and b are the halves of each row; computed in float.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

template <typename T>
class KernelSwiGlu {
public:
    __aicore__ inline KernelSwiGlu() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const SwiGluTilingData& tiling)
    {
        const uint32_t tileLength = tiling.tileLength;
        const uint32_t block = AscendC::GetBlockIdx();
        const uint32_t bigBefore = block < tiling.bigCoreNum ? block : tiling.bigCoreNum;
        this->firstRow = block * tiling.smallCoreRows + bigBefore;
        this->rowNum = tiling.smallCoreRows + (block < tiling.bigCoreNum ? 1 : 0);
        this->columnNum = tiling.columnNum / 2;
        this->tileLength = tileLength;
        xGm.SetGlobalBuffer((__gm__ T*)x);
        yGm.SetGlobalBuffer((__gm__ T*)y);
        pipe.InitBuffer(inQueue, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueue, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(gateBuf, tileLength * sizeof(float));
        pipe.InitBuffer(upBuf, tileLength * sizeof(float));
        pipe.InitBuffer(valueBuf, tileLength * sizeof(float));
    }

    __aicore__ inline void Process()
    {
        for (uint32_t row = this->firstRow; row < this->firstRow + this->rowNum; row++) {
            for (uint32_t column = 0; column < this->columnNum; column += this->tileLength) {
                const uint32_t rest = this->columnNum - column;
                const uint32_t count = rest < this->tileLength ? rest : this->tileLength;
                const uint64_t offset = static_cast<uint64_t>(row) * this->columnNum;
                Load(gateBuf.Get<float>(), xGm, 2 * offset + column, count);
                Load(upBuf.Get<float>(), xGm, 2 * offset + this->columnNum + column, count);
                Compute(count);
                Store(yGm, offset + column, valueBuf.Get<float>(), count);
            }
        }
    }

private:
    __aicore__ inline void Compute(uint32_t count)
    {
        AscendC::LocalTensor<float> gate = gateBuf.Get<float>();
        AscendC::LocalTensor<float> value = valueBuf.Get<float>();
        AscendC::Muls(value, gate, -1.0f, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Exp(value, value, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Adds(value, value, 1.0f, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Div(value, gate, value, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Mul(value, value, upBuf.Get<float>(), count);
        AscendC::PipeBarrier<PIPE_V>();
    }

    __aicore__ inline void Load(const AscendC::LocalTensor<float>& value, const AscendC::GlobalTensor<T>& source,
                                uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> local = inQueue.template AllocTensor<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
        AscendC::DataCopyPad(local, source[offset], copyParams, padParams);
        inQueue.EnQue(local);
        local = inQueue.template DeQue<T>();
        if constexpr (std::is_same_v<T, float>) {
            AscendC::Adds(value, local, 0.0f, count);
        } else {
            AscendC::Cast(value, local, AscendC::RoundMode::CAST_NONE, count);
        }
        AscendC::PipeBarrier<PIPE_V>();
        inQueue.FreeTensor(local);
    }

    __aicore__ inline void Store(const AscendC::GlobalTensor<T>& target, uint64_t offset,
                                 const AscendC::LocalTensor<float>& value, uint32_t count)
    {
        AscendC::LocalTensor<T> local = outQueue.template AllocTensor<T>();
        if constexpr (std::is_same_v<T, float>) {
            AscendC::Adds(local, value, 0.0f, count);
        } else {
            AscendC::Cast(local, value, AscendC::RoundMode::CAST_RINT, count);
        }
        outQueue.EnQue(local);
        local = outQueue.template DeQue<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPad(target[offset], local, copyParams);
        outQueue.FreeTensor(local);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueue;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueue;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> gateBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> upBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> valueBuf;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<T> yGm;
    uint32_t firstRow;
    uint32_t rowNum;
    uint32_t columnNum;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void swi_glu(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelSwiGlu<DTYPE_X> op;
    op.Init(x, y, tilingData);
    op.Process();
}
