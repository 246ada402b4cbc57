// Device side of Columns: y = |2 x + 1| of the first columns, some rows at a time, copied row by row.
#include "kernel_operator.h"

constexpr uint32_t TILE_ROWS = 11; // as on the host
constexpr uint32_t WIDTH = 64;

class KernelColumns {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const ColumnsTilingData& tiling)
    {
        begin = tiling.coreRowNum * AscendC::GetBlockIdx();
        end = begin + tiling.coreRowNum < tiling.rowNum ? begin + tiling.coreRowNum : tiling.rowNum;
        pitch = tiling.pitch;
        xGm.SetGlobalBuffer((__gm__ float*)x, static_cast<uint64_t>(tiling.rowNum) * pitch);
        yGm.SetGlobalBuffer((__gm__ float*)y, static_cast<uint64_t>(tiling.rowNum) * WIDTH);
        // An odd number of 256 bytes each: neighbours are half a turn of the banks apart.
        pipe.InitBuffer(inQueue, 1, TILE_ROWS * WIDTH * sizeof(float));
        pipe.InitBuffer(scaledBuf, TILE_ROWS * WIDTH * sizeof(float));
        pipe.InitBuffer(outQueue, 1, TILE_ROWS * WIDTH * sizeof(float));
    }

    __aicore__ inline void Process()
    {
        for (uint32_t first = begin; first < end; first += TILE_ROWS) {
            const uint32_t rows = end - first < TILE_ROWS ? end - first : TILE_ROWS;
            CopyIn(first, rows);
            Compute(rows * WIDTH);
            AscendC::LocalTensor<float> y = outQueue.DeQue<float>();
            AscendC::DataCopy(yGm[first * WIDTH], y, rows * WIDTH);
            outQueue.FreeTensor(y);
        }
    }

private:
    __aicore__ inline void CopyIn(uint32_t first, uint32_t rows)
    {
        AscendC::LocalTensor<float> x = inQueue.AllocTensor<float>();
        for (uint32_t i = 0; i < rows; i++) {
            AscendC::DataCopy(x[i * WIDTH], xGm[(first + i) * pitch], WIDTH);
        }
        inQueue.EnQue(x);
    }

    __aicore__ inline void Compute(uint32_t count)
    {
        AscendC::LocalTensor<float> x = inQueue.DeQue<float>();
        AscendC::LocalTensor<float> y = outQueue.AllocTensor<float>();
        AscendC::LocalTensor<float> scaled = scaledBuf.Get<float>();
        AscendC::Muls(scaled, x, 2.0f, count);
        AscendC::Adds(scaled, scaled, 1.0f, count);
        AscendC::Abs(y, scaled, count);
        outQueue.EnQue(y);
        inQueue.FreeTensor(x);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, 1> inQueue;
    AscendC::TQue<AscendC::QuePosition::VECOUT, 1> outQueue;
    AscendC::TBuf<AscendC::TPosition::VECCALC> scaledBuf;
    AscendC::GlobalTensor<float> xGm, yGm;
    uint32_t begin;
    uint32_t end;
    uint32_t pitch;
};

extern "C" __global__ __aicore__ void columns(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelColumns op;
    op.Init(x, y, tilingData);
    op.Process();
}
