// Device side of EmbeddingBag: y[b, :] is the sum of the rows of a table that indices[offsets[b]] up to indices[offsets[b + 1]]
// name, in float. Bags differ in length.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

template <typename T>
class KernelEmbeddingBag {
public:
    __aicore__ inline KernelEmbeddingBag() {}

    __aicore__ inline void Init(GM_ADDR table, GM_ADDR indices, GM_ADDR offsets, GM_ADDR y, const EmbeddingBagTilingData& tiling)
    {
        const uint32_t tileLength = tiling.tileLength;
        const uint32_t block = AscendC::GetBlockIdx();
        const uint32_t bigBefore = block < tiling.bigCoreNum ? block : tiling.bigCoreNum;
        this->firstRow = block * tiling.smallCoreRows + bigBefore;
        this->rowNum = tiling.smallCoreRows + (block < tiling.bigCoreNum ? 1 : 0);
        this->columnNum = tiling.columnNum;
        this->tileLength = tileLength;
        tableGm.SetGlobalBuffer((__gm__ T*)table);
        indicesGm.SetGlobalBuffer((__gm__ int32_t*)indices);
        offsetsGm.SetGlobalBuffer((__gm__ int32_t*)offsets);
        yGm.SetGlobalBuffer((__gm__ T*)y);
        pipe.InitBuffer(inQueue, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueue, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(sumBuf, tileLength * sizeof(float));
        pipe.InitBuffer(rowBuf, tileLength * sizeof(float));
    }

    __aicore__ inline void Process()
    {
        for (uint32_t bag = this->firstRow; bag < this->firstRow + this->rowNum; bag++) {
            const uint32_t first = offsetsGm.GetValue(bag);
            const uint32_t end = offsetsGm.GetValue(bag + 1);
            for (uint32_t column = 0; column < this->columnNum; column += this->tileLength) {
                const uint32_t rest = this->columnNum - column;
                const uint32_t count = rest < this->tileLength ? rest : this->tileLength;
                SumRows(first, end, column, count);
                Store(yGm, static_cast<uint64_t>(bag) * this->columnNum + column, sumBuf.Get<float>(), count);
            }
        }
    }

private:
    __aicore__ inline void SumRows(uint32_t first, uint32_t end, uint32_t column, uint32_t count)
    {
        AscendC::LocalTensor<float> sum = sumBuf.Get<float>();
        AscendC::LocalTensor<float> row = rowBuf.Get<float>();
        AscendC::Duplicate(sum, 0.0f, count);
        AscendC::PipeBarrier<PIPE_V>();
        for (uint32_t i = first; i < end; i++) {
            const uint64_t index = indicesGm.GetValue(i);
            Load(row, tableGm, index * this->columnNum + column, count);
            AscendC::Add(sum, sum, row, count);
            AscendC::PipeBarrier<PIPE_V>();
        }
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
    AscendC::TBuf<AscendC::QuePosition::VECCALC> sumBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> rowBuf;
    AscendC::GlobalTensor<T> tableGm;
    AscendC::GlobalTensor<int32_t> indicesGm;
    AscendC::GlobalTensor<int32_t> offsetsGm;
    AscendC::GlobalTensor<T> yGm;
    uint32_t firstRow;
    uint32_t rowNum;
    uint32_t columnNum;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void embedding_bag(GM_ADDR table, GM_ADDR indices, GM_ADDR offsets, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelEmbeddingBag<DTYPE_TABLE> op;
    op.Init(table, indices, offsets, y, tilingData);
    op.Process();
}
