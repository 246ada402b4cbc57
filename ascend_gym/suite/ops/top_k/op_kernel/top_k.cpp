// Device side of TopK: the k largest elements of each row, in descending order, and their places. Each tile of a row is
// sorted together with the largest elements so far.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

constexpr uint32_t SORTED_TOGETHER = 32;
constexpr uint32_t RECORD_BYTES = 8; // a value and its index
constexpr float LEAST = -65504.0f;

template <typename T>
class KernelTopK {
public:
    __aicore__ inline KernelTopK() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR index, const TopKTilingData& tiling)
    {
        const uint32_t tileLength = tiling.tileLength;
        const uint32_t block = AscendC::GetBlockIdx();
        const uint32_t bigBefore = block < tiling.bigCoreNum ? block : tiling.bigCoreNum;
        this->firstRow = block * tiling.smallCoreRows + bigBefore;
        this->rowNum = tiling.smallCoreRows + (block < tiling.bigCoreNum ? 1 : 0);
        this->columnNum = tiling.columnNum;
        this->tileLength = tileLength;
        this->k = tiling.k;
        this->keptLength = tiling.keptLength;
        const uint32_t sortedLength = tileLength + tiling.keptLength;
        xGm.SetGlobalBuffer((__gm__ T*)x);
        yGm.SetGlobalBuffer((__gm__ T*)y);
        indexGm.SetGlobalBuffer((__gm__ int32_t*)index);
        pipe.InitBuffer(inQueueX, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueueY, BUFFER_NUM, sortedLength * sizeof(T));
        pipe.InitBuffer(outQueueIndex, BUFFER_NUM, sortedLength * sizeof(int32_t));
        pipe.InitBuffer(valueBuf, sortedLength * sizeof(T));
        pipe.InitBuffer(placeBuf, sortedLength * sizeof(int32_t));
        pipe.InitBuffer(recordBuf, sortedLength * RECORD_BYTES);
        pipe.InitBuffer(workBuf, sortedLength * RECORD_BYTES);
    }

    __aicore__ inline void Process()
    {
        for (uint32_t row = this->firstRow; row < this->firstRow + this->rowNum; row++) {
            AscendC::Duplicate(valueBuf.Get<T>(), static_cast<T>(LEAST), this->keptLength);
            AscendC::Duplicate(placeBuf.Get<int32_t>(), 0, this->keptLength);
            for (uint32_t column = 0; column < this->columnNum; column += this->tileLength) {
                const uint32_t rest = this->columnNum - column;
                const uint32_t count = rest < this->tileLength ? rest : this->tileLength;
                CopyIn(static_cast<uint64_t>(row) * this->columnNum + column, count);
                SortTile(column, count);
                Extract(column + count == this->columnNum);
            }
            CopyOut(outQueueY, yGm, static_cast<uint64_t>(row) * this->k, this->k);
            CopyOut(outQueueIndex, indexGm, static_cast<uint64_t>(row) * this->k, this->k);
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

    // Values and places so far come first, those of the tile behind them.
    __aicore__ inline void SortTile(uint32_t column, uint32_t count)
    {
        AscendC::LocalTensor<T> xLocal = inQueueX.template DeQue<T>();
        AscendC::LocalTensor<T> value = valueBuf.Get<T>();
        AscendC::LocalTensor<T> record = recordBuf.Get<T>();
        AscendC::LocalTensor<T> work = workBuf.Get<T>();
        const uint32_t length = (count + SORTED_TOGETHER - 1) / SORTED_TOGETHER * SORTED_TOGETHER;
        AscendC::Duplicate(value[this->keptLength], static_cast<T>(LEAST), length);
        AscendC::CreateVecIndex(placeBuf.Get<int32_t>()[this->keptLength], static_cast<int32_t>(column), length);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Adds(value[this->keptLength], xLocal, static_cast<T>(0.0f), count);
        AscendC::PipeBarrier<PIPE_V>();
        inQueueX.FreeTensor(xLocal);
        const int32_t repeats = (this->keptLength + length) / SORTED_TOGETHER;
        AscendC::Concat(value, value, work, repeats);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Sort<T, true>(record, value, placeBuf.Get<uint32_t>(), work, repeats);
        AscendC::PipeBarrier<PIPE_V>();
    }

    // The largest records become the first values and places of the next tile, or the result.
    __aicore__ inline void Extract(bool last)
    {
        const int32_t repeats = this->keptLength / SORTED_TOGETHER;
        AscendC::LocalTensor<T> record = recordBuf.Get<T>();
        if (!last) {
            AscendC::Extract(valueBuf.Get<T>(), placeBuf.Get<uint32_t>(), record, repeats);
            AscendC::PipeBarrier<PIPE_V>();
            return;
        }
        AscendC::LocalTensor<T> yLocal = outQueueY.template AllocTensor<T>();
        AscendC::LocalTensor<int32_t> indexLocal = outQueueIndex.template AllocTensor<int32_t>();
        AscendC::LocalTensor<uint32_t> index = indexLocal.template ReinterpretCast<uint32_t>();
        AscendC::Extract(yLocal, index, record, repeats);
        outQueueY.EnQue(yLocal);
        outQueueIndex.EnQue(indexLocal);
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
    uint32_t k;
    uint32_t keptLength;
};

extern "C" __global__ __aicore__ void top_k(GM_ADDR x, GM_ADDR y, GM_ADDR index, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelTopK<DTYPE_X> op;
    op.Init(x, y, index, tilingData);
    op.Process();
}
