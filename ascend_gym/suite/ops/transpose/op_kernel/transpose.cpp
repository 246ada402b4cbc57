// Device side of Transpose: y[j, i] = x[i, j] for elements of two bytes, square tile by square tile: 16 rows are transposed at
// a time, block by block.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

constexpr uint32_t BLOCK_ELEMS = 16; // of 32 bytes
constexpr uint32_t LIST_ROWS = 16;

class KernelTranspose {
public:
    __aicore__ inline KernelTranspose() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const TransposeTilingData& tiling)
    {
        const uint32_t tileLength = tiling.tileLength;
        this->rowNum = tiling.rowNum;
        this->columnNum = tiling.columnNum;
        this->tileLength = tileLength;
        xGm.SetGlobalBuffer((__gm__ half*)x);
        yGm.SetGlobalBuffer((__gm__ half*)y);
        pipe.InitBuffer(inQueueX, BUFFER_NUM, tileLength * tileLength * sizeof(half));
        pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * tileLength * sizeof(half));
    }

    __aicore__ inline void Process()
    {
        const uint32_t acrossNum = (this->columnNum + this->tileLength - 1) / this->tileLength;
        const uint32_t tileNum = acrossNum * ((this->rowNum + this->tileLength - 1) / this->tileLength);
        for (uint32_t tile = AscendC::GetBlockIdx(); tile < tileNum; tile += AscendC::GetBlockNum()) {
            const uint32_t row = tile / acrossNum * this->tileLength;
            const uint32_t column = tile % acrossNum * this->tileLength;
            const uint32_t rows = Least(this->rowNum - row), columns = Least(this->columnNum - column);
            CopyIn(row, column, rows, columns);
            Compute();
            CopyOut(row, column, rows, columns);
        }
    }

private:
    __aicore__ inline uint32_t Least(uint32_t rest) { return rest < this->tileLength ? rest : this->tileLength; }

    // Blocks that the gaps between rows of a tile take in UB.
    __aicore__ inline uint32_t GapBlocks(uint32_t elems)
    {
        return this->tileLength / BLOCK_ELEMS - (elems + BLOCK_ELEMS - 1) / BLOCK_ELEMS;
    }

    __aicore__ inline void CopyIn(uint32_t row, uint32_t column, uint32_t rows, uint32_t columns)
    {
        AscendC::LocalTensor<half> xLocal = inQueueX.AllocTensor<half>();
        const uint32_t gapBytes = (this->columnNum - columns) * sizeof(half);
        AscendC::DataCopyExtParams copyParams{static_cast<uint16_t>(rows), static_cast<uint32_t>(columns * sizeof(half)),
                                              gapBytes, GapBlocks(columns), 0};
        AscendC::DataCopyPadExtParams<half> padParams{false, 0, 0, 0};
        AscendC::DataCopyPad(xLocal, xGm[static_cast<uint64_t>(row) * this->columnNum + column], copyParams, padParams);
        inQueueX.EnQue(xLocal);
    }

    __aicore__ inline void Compute()
    {
        AscendC::LocalTensor<half> xLocal = inQueueX.DeQue<half>();
        AscendC::LocalTensor<half> yLocal = outQueueY.AllocTensor<half>();
        AscendC::TransDataTo5HDParams params;
        params.repeatTimes = this->tileLength / BLOCK_ELEMS; // from block to block of the rows
        params.srcRepStride = 1;
        params.dstRepStride = this->tileLength;
        for (uint32_t first = 0; first < this->tileLength; first += LIST_ROWS) {
            uint64_t source[LIST_ROWS], target[LIST_ROWS];
            for (uint32_t i = 0; i < LIST_ROWS; i++) {
                source[i] = (uint64_t)xLocal[(first + i) * this->tileLength].GetPhyAddr();
                target[i] = (uint64_t)yLocal[i * this->tileLength + first].GetPhyAddr();
            }
            AscendC::TransDataTo5HD<half>(target, source, params);
        }
        outQueueY.EnQue(yLocal);
        inQueueX.FreeTensor(xLocal);
    }

    __aicore__ inline void CopyOut(uint32_t row, uint32_t column, uint32_t rows, uint32_t columns)
    {
        AscendC::LocalTensor<half> yLocal = outQueueY.DeQue<half>();
        const uint32_t gapBytes = (this->rowNum - rows) * sizeof(half);
        AscendC::DataCopyExtParams copyParams{static_cast<uint16_t>(columns), static_cast<uint32_t>(rows * sizeof(half)),
                                              GapBlocks(rows), gapBytes, 0};
        AscendC::DataCopyPad(yGm[static_cast<uint64_t>(column) * this->rowNum + row], yLocal, copyParams);
        outQueueY.FreeTensor(yLocal);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueX;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueY;
    AscendC::GlobalTensor<half> xGm;
    AscendC::GlobalTensor<half> yGm;
    uint32_t rowNum;
    uint32_t columnNum;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void transpose(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelTranspose op;
    op.Init(x, y, tilingData);
    op.Process();
}
