// Device side of Gather: y[i, :] = x[index[i], :]. Indices are fetched in tiles and read one by one; each
// row goes through UB in pieces of at most one tile.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

template <typename T>
class KernelGather {
public:
    __aicore__ inline KernelGather() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR index, GM_ADDR y, uint32_t indexNum, uint32_t coreIndexNum,
                                uint32_t indexTile, uint32_t columnNum, uint32_t tileLength)
    {
        const uint32_t begin = coreIndexNum * AscendC::GetBlockIdx();
        const uint32_t rest = begin < indexNum ? indexNum - begin : 0;
        this->coreIndexNum = rest < coreIndexNum ? rest : coreIndexNum;
        this->indexTile = indexTile;
        this->columnNum = columnNum;
        this->tileLength = tileLength;
        xGm.SetGlobalBuffer((__gm__ T*)x);
        indexGm.SetGlobalBuffer((__gm__ int32_t*)index + begin, this->coreIndexNum);
        yGm.SetGlobalBuffer((__gm__ T*)y + static_cast<uint64_t>(begin) * columnNum,
                            static_cast<uint64_t>(this->coreIndexNum) * columnNum);
        pipe.InitBuffer(rowQueue, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(indexBuf, indexTile * sizeof(int32_t));
    }

    __aicore__ inline void Process()
    {
        for (uint32_t first = 0; first < this->coreIndexNum; first += this->indexTile) {
            const uint32_t rest = this->coreIndexNum - first;
            const uint32_t count = rest < this->indexTile ? rest : this->indexTile;
            LoadIndices(first, count);
            AscendC::LocalTensor<int32_t> indexLocal = indexBuf.Get<int32_t>();
            for (uint32_t i = 0; i < count; i++) {
                const uint64_t source = static_cast<uint64_t>(indexLocal.GetValue(i)) * this->columnNum;
                CopyRow(source, static_cast<uint64_t>(first + i) * this->columnNum);
            }
            AscendC::PipeBarrier<PIPE_ALL>();
        }
    }

private:
    __aicore__ inline void LoadIndices(uint32_t first, uint32_t count)
    {
        event_t scalarDone = static_cast<event_t>(pipe.FetchEventID(AscendC::HardEvent::S_MTE2));
        AscendC::SetFlag<AscendC::HardEvent::S_MTE2>(scalarDone);
        AscendC::WaitFlag<AscendC::HardEvent::S_MTE2>(scalarDone);
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(int32_t)), 0, 0, 0};
        AscendC::DataCopyPadExtParams<int32_t> padParams{false, 0, 0, 0};
        AscendC::DataCopyPad(indexBuf.Get<int32_t>(), indexGm[first], copyParams, padParams);
        event_t copyDone = static_cast<event_t>(pipe.FetchEventID(AscendC::HardEvent::MTE2_S));
        AscendC::SetFlag<AscendC::HardEvent::MTE2_S>(copyDone);
        AscendC::WaitFlag<AscendC::HardEvent::MTE2_S>(copyDone);
    }

    __aicore__ inline void CopyRow(uint64_t source, uint64_t target)
    {
        for (uint32_t column = 0; column < this->columnNum; column += this->tileLength) {
            const uint32_t rest = this->columnNum - column;
            const uint32_t count = rest < this->tileLength ? rest : this->tileLength;
            CopyIn(source + column, count);
            CopyOut(target + column, count);
        }
    }

    __aicore__ inline void CopyIn(uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> rowLocal = rowQueue.AllocTensor<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
        AscendC::DataCopyPad(rowLocal, xGm[offset], copyParams, padParams);
        rowQueue.EnQue(rowLocal);
    }

    __aicore__ inline void CopyOut(uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> rowLocal = rowQueue.DeQue<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPad(yGm[offset], rowLocal, copyParams);
        rowQueue.FreeTensor(rowLocal);
    }

    AscendC::TPipe pipe;
    AscendC::TQueBind<AscendC::TPosition::VECIN, AscendC::TPosition::VECOUT, BUFFER_NUM> rowQueue;
    AscendC::TBuf<AscendC::TPosition::VECCALC> indexBuf;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<int32_t> indexGm;
    AscendC::GlobalTensor<T> yGm;
    uint32_t coreIndexNum;
    uint32_t indexTile;
    uint32_t columnNum;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void gather(GM_ADDR x, GM_ADDR index, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelGather<DTYPE_X> op;
    op.Init(x, index, y, tilingData.indexNum, tilingData.coreIndexNum, tilingData.indexTile, tilingData.columnNum,
            tilingData.tileLength);
    op.Process();
}
