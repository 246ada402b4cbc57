// Device side of MaxPool2d: the largest element of each channel of each window of an image (NHWC); what lies beyond the image
// does not count.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

constexpr uint32_t BLOCK_BYTES = 32;
constexpr float LEAST = -__builtin_inff();

template <typename T>
class KernelMaxPool2d {
public:
    __aicore__ inline KernelMaxPool2d() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const MaxPool2dTilingData& tiling)
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
        this->window = tiling.window;
        this->stride = tiling.stride;
        this->padding = tiling.padding;
        const uint32_t tileLength = tiling.window * tiling.pixelLength;
        xGm.SetGlobalBuffer((__gm__ T*)x);
        yGm.SetGlobalBuffer((__gm__ T*)y);
        pipe.InitBuffer(inQueueX, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueue, BUFFER_NUM, tiling.pixelLength * sizeof(T));
        pipe.InitBuffer(rowBuf, tileLength * sizeof(float));
        pipe.InitBuffer(resultBuf, tiling.pixelLength * sizeof(float));
    }

    __aicore__ inline void Process()
    {
        for (uint32_t pixel = this->firstRow; pixel < this->firstRow + this->rowNum; pixel++) {
            const uint32_t sample = pixel / (this->outHeight * this->outWidth);
            const int32_t top = pixel / this->outWidth % this->outHeight * this->stride - this->padding;
            const int32_t left = pixel % this->outWidth * this->stride - this->padding;
            PoolWindow(sample, top, left);
            Store(yGm, static_cast<uint64_t>(pixel) * this->channels, resultBuf.Get<float>(), this->channels);
        }
    }

private:
    __aicore__ inline void PoolWindow(uint32_t sample, int32_t top, int32_t left)
    {
        AscendC::LocalTensor<float> row = rowBuf.Get<float>();
        AscendC::LocalTensor<float> result = resultBuf.Get<float>();
        const int32_t firstColumn = left < 0 ? 0 : left;
        const int32_t end = left + this->window;
        const uint32_t columns = (end < this->width ? end : this->width) - firstColumn;
        AscendC::Duplicate(result, LEAST, this->pixelLength);
        AscendC::PipeBarrier<PIPE_V>();
        for (int32_t y = top; y < top + this->window; y++) {
            if (y < 0 || y >= this->height) {
                continue;
            }
            const uint64_t line = static_cast<uint64_t>(sample) * this->height + y;
            LoadPixels((line * this->width + firstColumn) * this->channels, columns);
            for (uint32_t i = 0; i < columns; i++) {
                AscendC::Max(result, result, row[i * this->pixelLength], this->pixelLength);
                AscendC::PipeBarrier<PIPE_V>();
            }
        }
    }

    // Copies neighbouring pixels; each begins a multiple of pixelLength behind the first.
    __aicore__ inline void LoadPixels(uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> xLocal = inQueueX.template AllocTensor<T>();
        const uint32_t blocks = (this->channels * sizeof(T) + BLOCK_BYTES - 1) / BLOCK_BYTES;
        const uint32_t gapBlocks = this->pixelLength * sizeof(T) / BLOCK_BYTES - blocks;
        AscendC::DataCopyExtParams copyParams{static_cast<uint16_t>(count),
                                              static_cast<uint32_t>(this->channels * sizeof(T)), 0, gapBlocks, 0};
        AscendC::DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
        AscendC::DataCopyPad(xLocal, xGm[offset], copyParams, padParams);
        inQueueX.EnQue(xLocal);
        xLocal = inQueueX.template DeQue<T>();
        AscendC::LocalTensor<float> row = rowBuf.Get<float>();
        if constexpr (std::is_same_v<T, float>) {
            AscendC::Adds(row, xLocal, 0.0f, count * this->pixelLength);
        } else {
            AscendC::Cast(row, xLocal, AscendC::RoundMode::CAST_NONE, count * this->pixelLength);
        }
        AscendC::PipeBarrier<PIPE_V>();
        inQueueX.FreeTensor(xLocal);
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
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueX;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueue;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> rowBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> resultBuf;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<T> yGm;
    uint32_t firstRow;
    uint32_t rowNum;
    int32_t height;
    int32_t width;
    uint32_t channels;
    uint32_t pixelLength;
    uint32_t outHeight;
    uint32_t outWidth;
    int32_t window;
    int32_t stride;
    int32_t padding;
};

extern "C" __global__ __aicore__ void max_pool2d(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelMaxPool2d<DTYPE_X> op;
    op.Init(x, y, tilingData);
    op.Process();
}
