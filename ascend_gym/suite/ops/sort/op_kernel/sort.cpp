// Device side of Sort: rows in descending order and where their elements come from. What pads a row is minus infinity
// and stands behind it: no element is less, and equal ones keep their order, so that the padding comes last.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

constexpr uint32_t SORTED_TOGETHER = 32;
constexpr uint32_t RECORD_BYTES = 8; // a value and its index

template <typename T>
class KernelSort {
public:
    __aicore__ inline KernelSort() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR index, const SortTilingData& tiling)
    {
        const uint32_t tileLength = tiling.tileLength;
        const uint32_t block = AscendC::GetBlockIdx();
        const uint32_t bigBefore = block < tiling.bigCoreNum ? block : tiling.bigCoreNum;
        this->firstRow = block * tiling.smallCoreRows + bigBefore;
        this->rowNum = tiling.smallCoreRows + (block < tiling.bigCoreNum ? 1 : 0);
        this->columnNum = tiling.columnNum;
        this->tileLength = tileLength;
        xGm.SetGlobalBuffer((__gm__ T*)x);
        yGm.SetGlobalBuffer((__gm__ T*)y);
        indexGm.SetGlobalBuffer((__gm__ int32_t*)index);
        pipe.InitBuffer(inQueueX, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueueIndex, BUFFER_NUM, tileLength * sizeof(int32_t));
        pipe.InitBuffer(valueBuf, tileLength * sizeof(T));
        pipe.InitBuffer(placeBuf, tileLength * sizeof(int32_t));
        pipe.InitBuffer(recordBuf, tileLength * RECORD_BYTES);
        pipe.InitBuffer(workBuf, tileLength * RECORD_BYTES);
        if constexpr (std::is_same_v<T, half>) {
            const uint16_t bits = 0xFC00;
            this->least = *reinterpret_cast<const half*>(&bits);
        } else {
            const uint32_t bits = 0xFF800000;
            this->least = *reinterpret_cast<const float*>(&bits);
        }
    }

    __aicore__ inline void Process()
    {
        AscendC::LocalTensor<int32_t> places = placeBuf.Get<int32_t>();
        AscendC::CreateVecIndex(places, 0, this->tileLength);
        for (uint32_t row = this->firstRow; row < this->firstRow + this->rowNum; row++) {
            const uint64_t offset = static_cast<uint64_t>(row) * this->columnNum;
            CopyIn(offset, this->columnNum);
            Compute();
            CopyOut(outQueueY, yGm, offset, this->columnNum);
            CopyOut(outQueueIndex, indexGm, offset, this->columnNum);
        }
    }

private:
    __aicore__ inline void CopyIn(uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> local = inQueueX.template AllocTensor<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
        AscendC::DataCopyPad(local, xGm[offset], copyParams, padParams);
        inQueueX.EnQue(local);
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

    __aicore__ inline void Compute()
    {
        AscendC::LocalTensor<T> xLocal = inQueueX.template DeQue<T>();
        AscendC::LocalTensor<T> yLocal = outQueueY.template AllocTensor<T>();
        AscendC::LocalTensor<int32_t> indexLocal = outQueueIndex.template AllocTensor<int32_t>();
        AscendC::LocalTensor<T> value = valueBuf.Get<T>();
        AscendC::LocalTensor<T> record = recordBuf.Get<T>();
        AscendC::LocalTensor<T> work = workBuf.Get<T>();
        AscendC::LocalTensor<uint32_t> places = placeBuf.Get<uint32_t>();
        AscendC::Duplicate(value, this->least, this->tileLength);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Adds(value, xLocal, static_cast<T>(0.0f), this->columnNum);
        AscendC::PipeBarrier<PIPE_V>();
        const int32_t repeats = this->tileLength / SORTED_TOGETHER;
        AscendC::Concat(value, value, work, repeats);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Sort<T, true>(record, value, places, work, repeats);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::LocalTensor<uint32_t> index = indexLocal.template ReinterpretCast<uint32_t>();
        AscendC::Extract(yLocal, index, record, repeats);
        outQueueY.EnQue(yLocal);
        outQueueIndex.EnQue(indexLocal);
        inQueueX.FreeTensor(xLocal);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueX;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueY;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueIndex;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> valueBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> placeBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> recordBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> workBuf;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<T> yGm;
    AscendC::GlobalTensor<int32_t> indexGm;
    uint32_t firstRow;
    uint32_t rowNum;
    uint32_t columnNum;
    uint32_t tileLength;
    T least;
};

extern "C" __global__ __aicore__ void sort(GM_ADDR x, GM_ADDR y, GM_ADDR index, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelSort<DTYPE_X> op;
    op.Init(x, y, index, tilingData);
    op.Process();
}
