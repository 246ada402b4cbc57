// Device side of Eye: ones on the diagonal, zeros elsewhere. Rows are cut into tiles of zeros, in which the one is set.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

template <typename T>
class KernelEye {
public:
    __aicore__ inline KernelEye() {}

    __aicore__ inline void Init(GM_ADDR y, const EyeTilingData& tiling)
    {
        const uint32_t tileLength = tiling.tileLength;
        const uint32_t block = AscendC::GetBlockIdx();
        const uint32_t bigBefore = block < tiling.bigCoreNum ? block : tiling.bigCoreNum;
        this->firstRow = block * tiling.smallCoreRows + bigBefore;
        this->rowNum = tiling.smallCoreRows + (block < tiling.bigCoreNum ? 1 : 0);
        this->columnNum = tiling.columnNum;
        this->tileLength = tileLength;
        yGm.SetGlobalBuffer((__gm__ T*)y);
        pipe.InitBuffer(zeroBuf, tileLength * sizeof(T));
        pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(T));
    }

    __aicore__ inline void Process()
    {
        AscendC::LocalTensor<T> zeros = zeroBuf.Get<T>();
        AscendC::Duplicate(zeros, static_cast<T>(0), this->tileLength);
        event_t zerosDone = static_cast<event_t>(pipe.FetchEventID(AscendC::HardEvent::V_MTE3));
        AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(zerosDone);
        AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(zerosDone);
        for (uint32_t row = this->firstRow; row < this->firstRow + this->rowNum; row++) {
            for (uint32_t column = 0; column < this->columnNum; column += this->tileLength) {
                const uint32_t rest = this->columnNum - column;
                const uint32_t count = rest < this->tileLength ? rest : this->tileLength;
                const uint64_t offset = static_cast<uint64_t>(row) * this->columnNum + column;
                if (row >= column && row - column < count) {
                    StoreWithOne(offset, row - column, count);
                } else {
                    Store(offset, zeros, count);
                }
            }
        }
    }

private:
    __aicore__ inline void StoreWithOne(uint64_t offset, uint32_t place, uint32_t count)
    {
        AscendC::LocalTensor<T> yLocal = outQueueY.template AllocTensor<T>();
        AscendC::Duplicate(yLocal, static_cast<T>(0), count);
        event_t vectorDone = static_cast<event_t>(pipe.FetchEventID(AscendC::HardEvent::V_S));
        AscendC::SetFlag<AscendC::HardEvent::V_S>(vectorDone);
        AscendC::WaitFlag<AscendC::HardEvent::V_S>(vectorDone);
        yLocal.SetValue(place, static_cast<T>(1));
        event_t scalarDone = static_cast<event_t>(pipe.FetchEventID(AscendC::HardEvent::S_MTE3));
        AscendC::SetFlag<AscendC::HardEvent::S_MTE3>(scalarDone);
        AscendC::WaitFlag<AscendC::HardEvent::S_MTE3>(scalarDone);
        outQueueY.EnQue(yLocal);
        yLocal = outQueueY.template DeQue<T>();
        Store(offset, yLocal, count);
        outQueueY.FreeTensor(yLocal);
    }

    __aicore__ inline void Store(uint64_t offset, const AscendC::LocalTensor<T>& local, uint32_t count)
    {
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPad(yGm[offset], local, copyParams);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueY;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> zeroBuf;
    AscendC::GlobalTensor<T> yGm;
    uint32_t firstRow;
    uint32_t rowNum;
    uint32_t columnNum;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void eye(GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelEye<DTYPE_Y> op;
    op.Init(y, tilingData);
    op.Process();
}
