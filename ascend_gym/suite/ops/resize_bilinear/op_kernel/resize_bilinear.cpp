// Device side of ResizeBilinear: each pixel of the output is a mean of four pixels of the input, weighted by their distances from
// its centre (NHWC). Two lines are blended first, then pairs of pixels of the blend.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

constexpr uint32_t BLOCK_BYTES = 32;

template <typename T>
class KernelResizeBilinear {
public:
    __aicore__ inline KernelResizeBilinear() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const ResizeBilinearTilingData& tiling)
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
        const uint32_t tileLength = tiling.width * tiling.pixelLength;
        pipe.InitBuffer(inQueueX, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueue, BUFFER_NUM, tiling.pixelLength * sizeof(T));
        pipe.InitBuffer(lineBuf, tileLength * sizeof(float));
        pipe.InitBuffer(blendBuf, tileLength * sizeof(float));
        pipe.InitBuffer(pixelBuf, tiling.pixelLength * sizeof(float));
        pipe.InitBuffer(partBuf, tiling.pixelLength * sizeof(float));
    }

    __aicore__ inline void Process()
    {
        for (uint32_t row = this->firstRow; row < this->firstRow + this->rowNum; row++) {
            const uint32_t sample = row / this->outHeight;
            BlendLines(sample, SourceOf(row % this->outHeight, this->height, this->outHeight));
            for (uint32_t column = 0; column < this->outWidth; column++) {
                BlendPixels(SourceOf(column, this->width, this->outWidth));
                const uint64_t offset = (static_cast<uint64_t>(row) * this->outWidth + column) * this->channels;
                Store(yGm, offset, pixelBuf.Get<float>(), this->channels);
            }
        }
    }

private:
    // Where the centre of an output lies between two neighbours of the input.
    struct Source {
        uint32_t first;
        uint32_t second;
        float weight; // of the second
    };

    __aicore__ inline Source SourceOf(uint32_t place, uint32_t length, uint32_t outLength)
    {
        // Kernels convert between floating and signed types alone.
        const int32_t at = place;
        const int32_t from = length;
        const int32_t to = outLength;
        float centre = (at + 0.5f) * from / to - 0.5f;
        centre = centre < 0.0f ? 0.0f : centre;
        const int32_t first = static_cast<int32_t>(centre);
        const int32_t second = first + 1 < from ? first + 1 : first;
        return {static_cast<uint32_t>(first), static_cast<uint32_t>(second), centre - first};
    }

    __aicore__ inline void BlendLines(uint32_t sample, const Source& source)
    {
        AscendC::LocalTensor<float> line = lineBuf.Get<float>();
        AscendC::LocalTensor<float> blend = blendBuf.Get<float>();
        const uint32_t length = this->width * this->pixelLength;
        LoadLine(blend, sample * this->height + source.first);
        LoadLine(line, sample * this->height + source.second);
        AscendC::Muls(blend, blend, 1.0f - source.weight, length);
        AscendC::Muls(line, line, source.weight, length);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Add(blend, blend, line, length);
        AscendC::PipeBarrier<PIPE_V>();
    }

    __aicore__ inline void BlendPixels(const Source& source)
    {
        AscendC::LocalTensor<float> blend = blendBuf.Get<float>();
        AscendC::LocalTensor<float> pixel = pixelBuf.Get<float>();
        AscendC::LocalTensor<float> part = partBuf.Get<float>();
        AscendC::Muls(pixel, blend[source.first * this->pixelLength], 1.0f - source.weight, this->pixelLength);
        AscendC::Muls(part, blend[source.second * this->pixelLength], source.weight, this->pixelLength);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Add(pixel, pixel, part, this->pixelLength);
        AscendC::PipeBarrier<PIPE_V>();
    }

    __aicore__ inline void LoadLine(const AscendC::LocalTensor<float>& line, uint32_t number)
    {
        AscendC::LocalTensor<T> xLocal = inQueueX.template AllocTensor<T>();
        const uint32_t blocks = (this->channels * sizeof(T) + BLOCK_BYTES - 1) / BLOCK_BYTES;
        const uint32_t gapBlocks = this->pixelLength * sizeof(T) / BLOCK_BYTES - blocks;
        AscendC::DataCopyExtParams copyParams{static_cast<uint16_t>(this->width),
                                              static_cast<uint32_t>(this->channels * sizeof(T)), 0, gapBlocks, 0};
        AscendC::DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
        const uint64_t offset = static_cast<uint64_t>(number) * this->width * this->channels;
        AscendC::DataCopyPad(xLocal, xGm[offset], copyParams, padParams);
        inQueueX.EnQue(xLocal);
        xLocal = inQueueX.template DeQue<T>();
        const uint32_t length = this->width * this->pixelLength;
        if constexpr (std::is_same_v<T, float>) {
            AscendC::Adds(line, xLocal, 0.0f, length);
        } else {
            AscendC::Cast(line, xLocal, AscendC::RoundMode::CAST_NONE, length);
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
    AscendC::TBuf<AscendC::QuePosition::VECCALC> lineBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> blendBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> pixelBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> partBuf;
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

extern "C" __global__ __aicore__ void resize_bilinear(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelResizeBilinear<DTYPE_X> op;
    op.Init(x, y, tilingData);
    op.Process();
}
