// Device side of ScatterAdd: var[indices[i], :] += updates[i, :], in place. Rows that several cores add to are summed by atomic copies.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

template <typename T>
class KernelScatterAdd {
public:
    __aicore__ inline KernelScatterAdd() {}

    __aicore__ inline void Init(GM_ADDR var, GM_ADDR indices, GM_ADDR updates, GM_ADDR var_ref, const ScatterAddTilingData& tiling)
    {
        const uint32_t tileLength = tiling.tileLength;
        const uint32_t block = AscendC::GetBlockIdx();
        const uint32_t bigBefore = block < tiling.bigCoreNum ? block : tiling.bigCoreNum;
        this->firstRow = block * tiling.smallCoreRows + bigBefore;
        this->rowNum = tiling.smallCoreRows + (block < tiling.bigCoreNum ? 1 : 0);
        this->columnNum = tiling.columnNum;
        this->tileLength = tileLength;
        this->indexTile = tiling.indexTile;
        indicesGm.SetGlobalBuffer((__gm__ int32_t*)indices);
        updatesGm.SetGlobalBuffer((__gm__ T*)updates);
        varGm.SetGlobalBuffer((__gm__ T*)var_ref);
        pipe.InitBuffer(rowQueue, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(indexBuf, tiling.indexTile * sizeof(int32_t));
    }

    __aicore__ inline void Process()
    {
        AscendC::SetAtomicAdd<T>();
        for (uint32_t first = 0; first < this->rowNum; first += this->indexTile) {
            const uint32_t rest = this->rowNum - first;
            const uint32_t count = rest < this->indexTile ? rest : this->indexTile;
            LoadIndices(this->firstRow + first, count);
            AscendC::LocalTensor<int32_t> indexLocal = indexBuf.Get<int32_t>();
            for (uint32_t i = 0; i < count; i++) {
                const uint64_t source = static_cast<uint64_t>(this->firstRow + first + i) * this->columnNum;
                AddRow(source, static_cast<uint64_t>(indexLocal.GetValue(i)) * this->columnNum);
            }
        }
        AscendC::SetAtomicNone();
    }

private:
    __aicore__ inline void LoadIndices(uint32_t first, uint32_t count)
    {
        event_t scalarDone = static_cast<event_t>(pipe.FetchEventID(AscendC::HardEvent::S_MTE2));
        AscendC::SetFlag<AscendC::HardEvent::S_MTE2>(scalarDone);
        AscendC::WaitFlag<AscendC::HardEvent::S_MTE2>(scalarDone);
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(int32_t)), 0, 0, 0};
        AscendC::DataCopyPadExtParams<int32_t> padParams{false, 0, 0, 0};
        AscendC::DataCopyPad(indexBuf.Get<int32_t>(), indicesGm[first], copyParams, padParams);
        event_t copyDone = static_cast<event_t>(pipe.FetchEventID(AscendC::HardEvent::MTE2_S));
        AscendC::SetFlag<AscendC::HardEvent::MTE2_S>(copyDone);
        AscendC::WaitFlag<AscendC::HardEvent::MTE2_S>(copyDone);
    }

    __aicore__ inline void AddRow(uint64_t source, uint64_t target)
    {
        for (uint32_t column = 0; column < this->columnNum; column += this->tileLength) {
            const uint32_t rest = this->columnNum - column;
            const uint32_t count = rest < this->tileLength ? rest : this->tileLength;
            AscendC::LocalTensor<T> local = rowQueue.template AllocTensor<T>();
            AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
            AscendC::DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
            AscendC::DataCopyPad(local, updatesGm[source + column], copyParams, padParams);
            rowQueue.EnQue(local);
            local = rowQueue.template DeQue<T>();
            AscendC::DataCopyPad(varGm[target + column], local, copyParams);
            rowQueue.FreeTensor(local);
        }
    }

    AscendC::TPipe pipe;
    AscendC::TQueBind<AscendC::TPosition::VECIN, AscendC::TPosition::VECOUT, BUFFER_NUM> rowQueue;
    AscendC::TBuf<AscendC::TPosition::VECCALC> indexBuf;
    AscendC::GlobalTensor<int32_t> indicesGm;
    AscendC::GlobalTensor<T> updatesGm;
    AscendC::GlobalTensor<T> varGm;
    uint32_t firstRow;
    uint32_t rowNum;
    uint32_t columnNum;
    uint32_t tileLength;
    uint32_t indexTile;
};

extern "C" __global__ __aicore__ void scatter_add(GM_ADDR var, GM_ADDR indices, GM_ADDR updates, GM_ADDR var_ref, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelScatterAdd<DTYPE_VAR> op;
    op.Init(var, indices, updates, var_ref, tilingData);
    op.Process();
}
