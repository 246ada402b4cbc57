// Device side of ForeachAddcmul: y[t] = x1[t] + value * x2[t] * x3[t] for every tensor t of the lists. The tiles of
// all tensors are numbered through and dealt out to the cores in turn.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

template <typename T>
class KernelForeachAddcmul {
public:
    __aicore__ inline KernelForeachAddcmul() {}

    __aicore__ inline void Init(GM_ADDR x1, GM_ADDR x2, GM_ADDR x3, GM_ADDR y, uint32_t tileLength, float value)
    {
        this->x1List = x1;
        this->x2List = x2;
        this->x3List = x3;
        this->yList = y;
        this->tileLength = tileLength;
        this->value = value;
        pipe.InitBuffer(inQueue, 2, tileLength * sizeof(T));
        pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(sumBuf, tileLength * sizeof(float));
        pipe.InitBuffer(productBuf, tileLength * sizeof(float));
        pipe.InitBuffer(factorBuf, tileLength * sizeof(float));
    }

    __aicore__ inline void Process(uint32_t tensorNum, const uint64_t* lengths)
    {
        const uint64_t coreNum = AscendC::GetBlockNum();
        uint64_t tile = AscendC::GetBlockIdx(); // of the tensor at hand, for this core
        for (uint32_t i = 0; i < tensorNum; i++) {
            const uint64_t tileNum = (lengths[i] + this->tileLength - 1) / this->tileLength;
            if (tile < tileNum) {
                OpenTensor(i, lengths[i]);
            }
            while (tile < tileNum) {
                const uint64_t offset = tile * this->tileLength;
                const uint64_t rest = lengths[i] - offset;
                ProcessTile(offset, rest < this->tileLength ? rest : this->tileLength);
                tile += coreNum;
            }
            tile -= tileNum;
        }
    }

private:
    __aicore__ inline void OpenTensor(uint32_t i, uint64_t length)
    {
        x1Gm.SetGlobalBuffer(TensorAddress(this->x1List, i), length);
        x2Gm.SetGlobalBuffer(TensorAddress(this->x2List, i), length);
        x3Gm.SetGlobalBuffer(TensorAddress(this->x3List, i), length);
        yGm.SetGlobalBuffer(TensorAddress(this->yList, i), length);
    }

    // A list argument points to a block whose first word is the byte offset of its table of addresses.
    __aicore__ inline __gm__ T* TensorAddress(GM_ADDR list, uint32_t i)
    {
        __gm__ uint64_t* words = reinterpret_cast<__gm__ uint64_t*>(list);
        __gm__ uint64_t* table = words + words[0] / sizeof(uint64_t);
        return reinterpret_cast<__gm__ T*>(table[i]);
    }

    __aicore__ inline void ProcessTile(uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<float> sum = sumBuf.Get<float>();
        AscendC::LocalTensor<float> product = productBuf.Get<float>();
        AscendC::LocalTensor<float> factor = factorBuf.Get<float>();
        Load(product, x2Gm, offset, count);
        Load(factor, x3Gm, offset, count);
        AscendC::Mul(product, product, factor, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Muls(product, product, this->value, count);
        AscendC::PipeBarrier<PIPE_V>();
        Load(sum, x1Gm, offset, count);
        AscendC::Add(sum, sum, product, count);
        AscendC::PipeBarrier<PIPE_V>();
        Store(yGm, offset, sum, count);
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
        AscendC::LocalTensor<T> local = outQueueY.template AllocTensor<T>();
        if constexpr (std::is_same_v<T, float>) {
            AscendC::Adds(local, value, 0.0f, count);
        } else {
            AscendC::Cast(local, value, AscendC::RoundMode::CAST_RINT, count);
        }
        outQueueY.EnQue(local);
        local = outQueueY.template DeQue<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPad(target[offset], local, copyParams);
        outQueueY.FreeTensor(local);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, 2> inQueue;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueY;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> sumBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> productBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> factorBuf;
    AscendC::GlobalTensor<T> x1Gm;
    AscendC::GlobalTensor<T> x2Gm;
    AscendC::GlobalTensor<T> x3Gm;
    AscendC::GlobalTensor<T> yGm;
    GM_ADDR x1List;
    GM_ADDR x2List;
    GM_ADDR x3List;
    GM_ADDR yList;
    uint32_t tileLength;
    float value;
};

extern "C" __global__ __aicore__ void foreach_addcmul(GM_ADDR x1, GM_ADDR x2, GM_ADDR x3, GM_ADDR y, GM_ADDR workspace,
                                                      GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelForeachAddcmul<DTYPE_X1> op;
    op.Init(x1, x2, x3, y, tilingData.tileLength, tilingData.value);
    op.Process(tilingData.tensorNum, tilingData.lengths);
}
