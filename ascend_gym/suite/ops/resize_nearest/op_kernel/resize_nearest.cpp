// Device side of ResizeNearest: each pixel of the output is the pixel of the input at its place, rounded down (NHWC).
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 2;

template <typename T>
class KernelResizeNearest {
public:
    __aicore__ inline KernelResizeNearest() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const ResizeNearestTilingData& tiling)
    {
        const uint32_t block = AscendC::GetBlockIdx();
        const uint32_t bigBefore = block < tiling.bigCoreNum ? block : tiling.bigCoreNum;
        this->firstRow = block * tiling.smallCoreRows + bigBefore;
        this->rowNum = tiling.smallCoreRows + (block < tiling.bigCoreNum ? 1 : 0);
        this->height = tiling.height;
        this->width = tiling.width;
        this->channels = tiling.channels;
        this->pixelLength = tiling.pixelLength;
        this->outHeight = tiling.outHeight;
        this->outWidth = tiling.outWidth;
        xGm.SetGlobalBuffer((__gm__ T*)x);
        yGm.SetGlobalBuffer((__gm__ T*)y);
        pipe.InitBuffer(pixelQueue, BUFFER_NUM, tiling.pixelLength * sizeof(T));
    }

    __aicore__ inline void Process()
    {
        for (uint32_t row = this->firstRow; row < this->firstRow + this->rowNum; row++) {
            const uint32_t sample = row / this->outHeight;
            const uint32_t sourceRow = row % this->outHeight * this->height / this->outHeight;
            const uint64_t line = static_cast<uint64_t>(sample * this->height + sourceRow) * this->width;
            for (uint32_t column = 0; column < this->outWidth; column++) {
                CopyIn((line + column * this->width / this->outWidth) * this->channels);
                CopyOut((static_cast<uint64_t>(row) * this->outWidth + column) * this->channels);
            }
        }
    }

private:
    __aicore__ inline void CopyIn(uint64_t offset)
    {
        AscendC::LocalTensor<T> local = pixelQueue.template AllocTensor<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(this->channels * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
        AscendC::DataCopyPad(local, xGm[offset], copyParams, padParams);
        pixelQueue.EnQue(local);
    }

    __aicore__ inline void CopyOut(uint64_t offset)
    {
        AscendC::LocalTensor<T> local = pixelQueue.template DeQue<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(this->channels * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPad(yGm[offset], local, copyParams);
        pixelQueue.FreeTensor(local);
    }

    AscendC::TPipe pipe;
    AscendC::TQueBind<AscendC::TPosition::VECIN, AscendC::TPosition::VECOUT, BUFFER_NUM> pixelQueue;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<T> yGm;
    uint32_t firstRow;
    uint32_t rowNum;
    uint32_t height;
    uint32_t width;
    uint32_t channels;
    uint32_t pixelLength;
    uint32_t outHeight;
    uint32_t outWidth;
};

extern "C" __global__ __aicore__ void resize_nearest(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelResizeNearest<DTYPE_X> op;
    op.Init(x, y, tilingData);
    op.Process();
}
