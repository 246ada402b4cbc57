// Device side of Tril: the lower triangles of matrices. Of each tile of a row only the part that is kept is copied in, over zeros.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

constexpr uint32_t BLOCK_BYTES = 32;

template <typename T>
class KernelTril {
public:
    __aicore__ inline KernelTril() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const TrilTilingData& tiling)
    {
        const uint32_t tileLength = tiling.tileLength;
        const uint32_t block = AscendC::GetBlockIdx();
        const uint32_t bigBefore = block < tiling.bigCoreNum ? block : tiling.bigCoreNum;
        this->firstRow = block * tiling.smallCoreRows + bigBefore;
        this->rowNum = tiling.smallCoreRows + (block < tiling.bigCoreNum ? 1 : 0);
        this->columnNum = tiling.columnNum;
        this->matrixRows = tiling.matrixRows;
        this->diagonal = tiling.diagonal;
        this->tileLength = tileLength;
        xGm.SetGlobalBuffer((__gm__ T*)x);
        yGm.SetGlobalBuffer((__gm__ T*)y);
        pipe.InitBuffer(rowQueue, BUFFER_NUM, tileLength * sizeof(T));
    }

    __aicore__ inline void Process()
    {
        for (uint32_t row = this->firstRow; row < this->firstRow + this->rowNum; row++) {
            const int64_t end = static_cast<int64_t>(row % this->matrixRows) + this->diagonal + 1;
            const uint32_t kept = end < 0 ? 0 : (end < this->columnNum ? end : this->columnNum);
            for (uint32_t column = 0; column < this->columnNum; column += this->tileLength) {
                const uint32_t rest = this->columnNum - column;
                const uint32_t count = rest < this->tileLength ? rest : this->tileLength;
                const uint32_t left = kept > column ? kept - column : 0;
                const uint64_t offset = static_cast<uint64_t>(row) * this->columnNum + column;
                CopyIn(offset, left < count ? left : count, count);
                CopyOut(offset, count);
            }
        }
    }

private:
    __aicore__ inline void CopyIn(uint64_t offset, uint32_t kept, uint32_t count)
    {
        AscendC::LocalTensor<T> local = rowQueue.template AllocTensor<T>();
        if (kept < count) {
            AscendC::Duplicate(local, static_cast<T>(0.0f), count);
            event_t zerosDone = static_cast<event_t>(pipe.FetchEventID(AscendC::HardEvent::V_MTE2));
            AscendC::SetFlag<AscendC::HardEvent::V_MTE2>(zerosDone);
            AscendC::WaitFlag<AscendC::HardEvent::V_MTE2>(zerosDone);
        }
        if (kept > 0) {
            const uint32_t blockElems = BLOCK_BYTES / sizeof(T);
            const uint8_t padding = (blockElems - kept % blockElems) % blockElems;
            AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(kept * sizeof(T)), 0, 0, 0};
            AscendC::DataCopyPadExtParams<T> padParams{true, 0, padding, static_cast<T>(0.0f)};
            AscendC::DataCopyPad(local, xGm[offset], copyParams, padParams);
        } else {
            event_t zerosDone = static_cast<event_t>(pipe.FetchEventID(AscendC::HardEvent::V_MTE3));
            AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(zerosDone);
            AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(zerosDone);
        }
        rowQueue.EnQue(local);
    }

    __aicore__ inline void CopyOut(uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> local = rowQueue.template DeQue<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPad(yGm[offset], local, copyParams);
        rowQueue.FreeTensor(local);
        event_t copyDone = static_cast<event_t>(pipe.FetchEventID(AscendC::HardEvent::MTE3_V));
        AscendC::SetFlag<AscendC::HardEvent::MTE3_V>(copyDone);
        AscendC::WaitFlag<AscendC::HardEvent::MTE3_V>(copyDone);
    }

    AscendC::TPipe pipe;
    AscendC::TQueBind<AscendC::TPosition::VECIN, AscendC::TPosition::VECOUT, BUFFER_NUM> rowQueue;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<T> yGm;
    uint32_t firstRow;
    uint32_t rowNum;
    uint32_t columnNum;
    uint32_t matrixRows;
    int32_t diagonal;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void tril(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelTril<DTYPE_X> op;
    op.Init(x, y, tilingData);
    op.Process();
}
