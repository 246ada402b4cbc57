// Device side of ForeachAdd: y[t] = x1[t] + alpha * x2[t] for every tensor t of the lists. The tiles of all
// tensors are numbered through and dealt out to the cores in turn.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 2;

template <typename T>
class KernelForeachAdd {
public:
    __aicore__ inline KernelForeachAdd() {}

    __aicore__ inline void Init(GM_ADDR x1, GM_ADDR x2, GM_ADDR y, uint32_t tileLength, float alpha)
    {
        this->x1List = x1;
        this->x2List = x2;
        this->yList = y;
        this->tileLength = tileLength;
        this->alpha = static_cast<T>(alpha);
        pipe.InitBuffer(inQueueX1, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(inQueueX2, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(scaledBuf, tileLength * sizeof(T));
    }

    __aicore__ inline void Process(uint32_t tensorNum, const uint64_t* lengths)
    {
        const uint64_t coreNum = AscendC::GetBlockNum();
        uint64_t firstTile = AscendC::GetBlockIdx(); // of the tensor at hand, for this core
        for (uint32_t i = 0; i < tensorNum; i++) {
            const uint64_t tileNum = (lengths[i] + this->tileLength - 1) / this->tileLength;
            if (firstTile < tileNum) {
                OpenTensor(i, lengths[i]);
            }
            while (firstTile < tileNum) {
                ProcessTile(firstTile * this->tileLength, lengths[i]);
                firstTile += coreNum;
            }
            firstTile -= tileNum;
        }
    }

private:
    __aicore__ inline void OpenTensor(uint32_t i, uint64_t length)
    {
        x1Gm.SetGlobalBuffer(TensorAddress(this->x1List, i), length);
        x2Gm.SetGlobalBuffer(TensorAddress(this->x2List, i), length);
        yGm.SetGlobalBuffer(TensorAddress(this->yList, i), length);
    }

    // A list argument points to a block whose first word is the byte offset of its table of addresses.
    __aicore__ inline __gm__ T* TensorAddress(GM_ADDR list, uint32_t i)
    {
        __gm__ uint64_t* words = reinterpret_cast<__gm__ uint64_t*>(list);
        __gm__ uint64_t* table = words + words[0] / sizeof(uint64_t);
        return reinterpret_cast<__gm__ T*>(table[i]);
    }

    __aicore__ inline void ProcessTile(uint64_t offset, uint64_t length)
    {
        const uint64_t rest = length - offset;
        const uint32_t count = rest < this->tileLength ? rest : this->tileLength;
        CopyIn(offset, count);
        Compute(count);
        CopyOut(offset, count);
    }

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
        AscendC::LocalTensor<T> scaled = scaledBuf.Get<T>();
        AscendC::Muls(scaled, x2Local, this->alpha, count);
        AscendC::PipeBarrier<PIPE_ALL>();
        AscendC::Add(yLocal, x1Local, scaled, count);
        AscendC::PipeBarrier<PIPE_ALL>();
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
    AscendC::TBuf<AscendC::QuePosition::VECCALC> scaledBuf;
    AscendC::GlobalTensor<T> x1Gm;
    AscendC::GlobalTensor<T> x2Gm;
    AscendC::GlobalTensor<T> yGm;
    GM_ADDR x1List;
    GM_ADDR x2List;
    GM_ADDR yList;
    uint32_t tileLength;
    T alpha;
};

extern "C" __global__ __aicore__ void foreach_add(GM_ADDR x1, GM_ADDR x2, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelForeachAdd<DTYPE_X1> op;
    op.Init(x1, x2, y, tilingData.tileLength, tilingData.alpha);
    op.Process(tilingData.tensorNum, tilingData.lengths);
}
