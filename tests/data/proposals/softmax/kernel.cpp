// Device side of Softmax over the last axis, computed in float. A row that fits one tile is read once;
// a longer one is read three times: for its maximum, for its sum and for its output.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;
constexpr int32_t ROW_BUFFERS = 2;

constexpr uint32_t BLOCK_BYTES = 32;
constexpr uint32_t REPEAT_FLOATS = 64;
constexpr uint32_t STRIDE_FLOATS = 512;      // rows in UB begin at multiples of eight repeats
constexpr uint32_t MAX_SHORT_COLUMNS = 4096; // what two block reductions and one repeat reduce
constexpr uint32_t MAX_ROWS = 16;
constexpr uint32_t ROWS_BYTES = 168 * 1024;
constexpr uint32_t MAX_RESIDENT_COLUMNS = 40000;
constexpr uint32_t PIECE = 8000;

template <typename T>
class KernelSoftmax {
public:
    __aicore__ inline KernelSoftmax() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, uint32_t rowNum, uint32_t coreRowNum, uint32_t columnNum,
                                uint32_t tileLength)
    {
        const uint32_t rowBegin = coreRowNum * AscendC::GetBlockIdx();
        const uint32_t rest = rowBegin < rowNum ? rowNum - rowBegin : 0;
        this->coreRowNum = rest < coreRowNum ? rest : coreRowNum;
        this->columnNum = columnNum;
        this->tileLength = tileLength;
        const uint64_t begin = static_cast<uint64_t>(rowBegin) * columnNum;
        const uint64_t length = static_cast<uint64_t>(this->coreRowNum) * columnNum;
        xGm.SetGlobalBuffer((__gm__ T*)x + begin, length);
        yGm.SetGlobalBuffer((__gm__ T*)y + begin, length);
        if (columnNum <= MAX_SHORT_COLUMNS) {
            InitRows();
        } else if (IsResident()) {
            pipe.InitBuffer(valueBuf, (columnNum + REPEAT_FLOATS) * sizeof(float));
            pipe.InitBuffer(partBuf, (MAX_RESIDENT_COLUMNS / 8 + REPEAT_FLOATS) * sizeof(float));
            pipe.InitBuffer(workBuf, 1024 * sizeof(float));
            pipe.InitBuffer(resultBuf, BLOCK_BYTES);
        } else {
            InitTiles();
        }
    }

    __aicore__ inline void Process()
    {
        if (this->columnNum <= MAX_SHORT_COLUMNS) {
            ProcessRows();
            return;
        }
        if constexpr (std::is_same_v<T, float>) {
            if (IsResident()) {
                for (uint32_t row = 0; row < this->coreRowNum; row++) {
                    ProcessResidentRow(static_cast<uint64_t>(row) * this->columnNum);
                }
                return;
            }
        }
        for (uint32_t row = 0; row < this->coreRowNum; row++) {
            ProcessLongRow(static_cast<uint64_t>(row) * this->columnNum);
        }
    }

private:
    __aicore__ inline bool IsResident()
    {
        return std::is_same_v<T, float> && this->columnNum <= MAX_RESIDENT_COLUMNS && this->columnNum % 64 == 0;
    }

    __aicore__ inline void InitTiles()
    {
        pipe.InitBuffer(inQueueX, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(valueBuf, tileLength * sizeof(float));
        pipe.InitBuffer(resultBuf, BLOCK_BYTES);
        // ReduceMax keeps a value and an index per repeat.
        const uint32_t workBytes = (tileLength / REPEAT_FLOATS + 1) * 2 * sizeof(float);
        pipe.InitBuffer(workBuf, (workBytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES);
    }

    // ---- many short rows at a time; no value leaves the vector unit ----
    __aicore__ inline void InitRows()
    {
        this->stride = (this->columnNum + STRIDE_FLOATS - 1) / STRIDE_FLOATS * STRIDE_FLOATS;
        const uint32_t queued = 2 * ROW_BUFFERS * sizeof(T);
        const uint32_t values = std::is_same_v<T, half> ? sizeof(float) : 0;
        const uint32_t rowBytes = this->stride * (queued + values) + this->stride / 8 * 5;
        const uint32_t fit = ROWS_BYTES / rowBytes;
        this->rows = fit < MAX_ROWS ? fit : MAX_ROWS;
        this->rows = this->rows < this->coreRowNum || this->coreRowNum == 0 ? this->rows : this->coreRowNum;
        pipe.InitBuffer(inQueueX, ROW_BUFFERS, this->rows * this->stride * sizeof(T));
        pipe.InitBuffer(outQueueY, ROW_BUFFERS, this->rows * this->stride * sizeof(T));
        if constexpr (std::is_same_v<T, half>) {
            pipe.InitBuffer(valueBuf, this->rows * this->stride * sizeof(float));
        }
        pipe.InitBuffer(partBuf, this->rows * this->stride / 8 * sizeof(float));
        pipe.InitBuffer(workBuf, this->rows * this->stride / 64 * sizeof(float));
        pipe.InitBuffer(resultBuf, 2 * MAX_ROWS * sizeof(float));
        pipe.InitBuffer(wideBuf, MAX_ROWS * BLOCK_BYTES);
    }

    __aicore__ inline void ProcessRows()
    {
        // What pads the rows is never the maximum, and copies leave it as it is.
        T lowest = static_cast<T>(-60000.0f);
        for (int32_t i = 0; i < ROW_BUFFERS && this->stride != this->columnNum; i++) {
            AscendC::LocalTensor<T> buffer = inQueueX.AllocTensor<T>();
            AscendC::Duplicate(buffer, lowest, this->rows * this->stride);
            inQueueX.EnQue(buffer);
            buffer = inQueueX.DeQue<T>();
            inQueueX.FreeTensor(buffer);
        }
        const uint32_t bytes = this->columnNum * sizeof(T);
        const uint32_t blocks = (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES;
        const uint32_t gap = this->stride * sizeof(T) / BLOCK_BYTES - blocks;
        const uint8_t right = static_cast<uint8_t>((blocks * BLOCK_BYTES - bytes) / sizeof(T));
        for (uint32_t first = 0; first < this->coreRowNum; first += this->rows) {
            const uint32_t rest = this->coreRowNum - first;
            const uint32_t count = rest < this->rows ? rest : this->rows;
            const uint64_t offset = static_cast<uint64_t>(first) * this->columnNum;
            AscendC::LocalTensor<T> xLocal = inQueueX.AllocTensor<T>();
            AscendC::DataCopyPad(xLocal, xGm[offset],
                                 AscendC::DataCopyExtParams{static_cast<uint16_t>(count), bytes, 0, gap, 0},
                                 AscendC::DataCopyPadExtParams<T>{right > 0, 0, right, lowest});
            inQueueX.EnQue(xLocal);
            ComputeRows(count);
            AscendC::LocalTensor<T> yLocal = outQueueY.DeQue<T>();
            AscendC::DataCopyPad(yGm[offset], yLocal,
                                 AscendC::DataCopyExtParams{static_cast<uint16_t>(count), bytes, gap, 0, 0});
            outQueueY.FreeTensor(yLocal);
        }
    }

    __aicore__ inline void ComputeRows(uint32_t count)
    {
        const uint32_t all = count * this->stride;
        AscendC::LocalTensor<T> xLocal = inQueueX.DeQue<T>();
        AscendC::LocalTensor<T> yLocal = outQueueY.AllocTensor<T>();
        if constexpr (std::is_same_v<T, half>) {
            AscendC::LocalTensor<float> value = valueBuf.Get<float>();
            AscendC::Cast(value, xLocal, AscendC::RoundMode::CAST_NONE, all);
            inQueueX.FreeTensor(xLocal);
            Normalise(value, value, count);
            AscendC::Cast(yLocal, value, AscendC::RoundMode::CAST_RINT, all);
        } else {
            Normalise(yLocal, xLocal, count);
            inQueueX.FreeTensor(xLocal);
        }
        outQueueY.EnQue<T>(yLocal);
    }

    __aicore__ inline void Normalise(const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x,
                                     uint32_t count)
    {
        AscendC::LocalTensor<float> stat = resultBuf.Get<float>();
        AscendC::LocalTensor<float> ones = stat[MAX_ROWS];
        AscendC::LocalTensor<float> wide = wideBuf.Get<float>();
        const uint8_t groups = static_cast<uint8_t>(this->stride / REPEAT_FLOATS);
        const uint8_t blocks = static_cast<uint8_t>((count + 7) / 8);
        const uint64_t mask = REPEAT_FLOATS;
        const AscendC::BinaryRepeatParams byRow{1, 1, 0, 8, 8, 0};
        ReduceRows<true>(stat, x, count);
        AscendC::Brcb(wide, stat, blocks, AscendC::BrcbRepeatParams{1, 8});
        for (uint32_t r = 0; r < count; r++) {
            AscendC::Sub(y[r * this->stride], x[r * this->stride], wide[r * 8], mask, groups, byRow);
        }
        AscendC::Exp(y, y, count * this->stride);
        ReduceRows<false>(stat, y, count);
        AscendC::Duplicate(ones, 1.0f, MAX_ROWS);
        AscendC::Div(stat, ones, stat, count);
        AscendC::Brcb(wide, stat, blocks, AscendC::BrcbRepeatParams{1, 8});
        for (uint32_t r = 0; r < count; r++) {
            AscendC::Mul(y[r * this->stride], y[r * this->stride], wide[r * 8], mask, groups, byRow);
        }
    }

    // One value a row: by blocks of eight, by blocks of eight again, then what is left of a row by one repeat.
    template <bool MAX>
    __aicore__ inline void ReduceRows(const AscendC::LocalTensor<float>& stat, const AscendC::LocalTensor<float>& x,
                                      uint32_t count)
    {
        AscendC::LocalTensor<float> part = partBuf.Get<float>();
        AscendC::LocalTensor<float> work = workBuf.Get<float>();
        const int32_t repeats = count * this->stride / REPEAT_FLOATS;
        for (int32_t done = 0; done < repeats; done += 248) {
            const int32_t some = repeats - done < 248 ? repeats - done : 248;
            Blocks<MAX>(part[done * 8], x[done * REPEAT_FLOATS], some);
        }
        Blocks<MAX>(work, part, repeats / 8);
        const int32_t left = this->stride / REPEAT_FLOATS;
        if constexpr (MAX) {
            AscendC::WholeReduceMax<float>(stat, work, left, count, 1, 1, left / 8, AscendC::ReduceOrder::ORDER_ONLY_VALUE);
        } else {
            AscendC::WholeReduceSum<float>(stat, work, left, count, 1, 1, left / 8);
        }
    }

    template <bool MAX>
    __aicore__ inline void Blocks(const AscendC::LocalTensor<float>& dst, const AscendC::LocalTensor<float>& src,
                                  int32_t repeats)
    {
        if constexpr (MAX) {
            AscendC::BlockReduceMax<float>(dst, src, repeats, 64, 1, 1, 8);
        } else {
            AscendC::BlockReduceSum<float>(dst, src, repeats, 64, 1, 1, 8);
        }
    }

    // ---- one long row at a time, read once: it stays in UB ----
    __aicore__ inline void ProcessResidentRow(uint64_t offset)
    {
        AscendC::LocalTensor<float> value = valueBuf.Get<float>();
        AscendC::LocalTensor<float> part = partBuf.Get<float>();
        AscendC::LocalTensor<float> work = workBuf.Get<float>();
        AscendC::LocalTensor<float> result = resultBuf.Get<float>();
        const uint32_t pieces = (this->columnNum + PIECE - 1) / PIECE;
        for (uint32_t p = 0; p < pieces; p++) {
            if (p < this->written) {
                AscendC::WaitFlag<AscendC::HardEvent::MTE3_MTE2>(p);
            }
            AscendC::DataCopy(value[p * PIECE], xGm[offset + p * PIECE], Piece(p));
            AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(p);
        }
        for (uint32_t p = 0; p < pieces; p++) {
            AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(p);
            Blocks<true>(part[p * PIECE / 8], value[p * PIECE], Piece(p) / REPEAT_FLOATS);
        }
        AscendC::ReduceMax(result, part, work, this->columnNum / 8);
        const float rowMax = result.GetValue(0);
        for (uint32_t p = 0; p < pieces; p++) {
            AscendC::Adds(value[p * PIECE], value[p * PIECE], -rowMax, Piece(p));
            AscendC::Exp(value[p * PIECE], value[p * PIECE], Piece(p));
            Blocks<false>(part[p * PIECE / 8], value[p * PIECE], Piece(p) / REPEAT_FLOATS);
        }
        AscendC::ReduceSum(result, part, work, this->columnNum / 8);
        const float factor = 1.0f / result.GetValue(0);
        this->written = 0;
        for (uint32_t p = 0; p < pieces; p++) {
            AscendC::Muls(value[p * PIECE], value[p * PIECE], factor, Piece(p));
            AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(p);
            AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(p);
            AscendC::DataCopy(yGm[offset + p * PIECE], value[p * PIECE].template ReinterpretCast<T>(), Piece(p));
            if (offset + this->columnNum < static_cast<uint64_t>(this->coreRowNum) * this->columnNum) {
                AscendC::SetFlag<AscendC::HardEvent::MTE3_MTE2>(p);
                this->written++;
            }
        }
    }

    __aicore__ inline uint32_t Piece(uint32_t p)
    {
        const uint32_t rest = this->columnNum - p * PIECE;
        return rest < PIECE ? rest : PIECE;
    }

    __aicore__ inline void ProcessLongRow(uint64_t offset)
    {
        LoadTile(offset, this->tileLength);
        float rowMax = MaxOfTile(this->tileLength);
        for (uint32_t column = this->tileLength; column < this->columnNum; column += this->tileLength) {
            LoadTile(offset + column, TileCount(column));
            const float tileMax = MaxOfTile(TileCount(column));
            rowMax = tileMax > rowMax ? tileMax : rowMax;
        }
        float rowSum = 0.0f;
        for (uint32_t column = 0; column < this->columnNum; column += this->tileLength) {
            LoadTile(offset + column, TileCount(column));
            ExpOfTile(rowMax, TileCount(column));
            rowSum += SumOfTile(TileCount(column));
        }
        for (uint32_t column = 0; column < this->columnNum; column += this->tileLength) {
            LoadTile(offset + column, TileCount(column));
            ExpOfTile(rowMax, TileCount(column));
            StoreTile(offset + column, 1.0f / rowSum, TileCount(column));
        }
    }

    __aicore__ inline uint32_t TileCount(uint32_t column)
    {
        const uint32_t rest = this->columnNum - column;
        return rest < this->tileLength ? rest : this->tileLength;
    }

    __aicore__ inline void LoadTile(uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> xLocal = inQueueX.AllocTensor<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
        AscendC::DataCopyPad(xLocal, xGm[offset], copyParams, padParams);
        inQueueX.EnQue(xLocal);

        xLocal = inQueueX.DeQue<T>();
        AscendC::LocalTensor<float> value = valueBuf.Get<float>();
        if constexpr (std::is_same_v<T, half>) {
            AscendC::Cast(value, xLocal, AscendC::RoundMode::CAST_NONE, count);
        } else {
            AscendC::Adds(value, xLocal, 0.0f, count);
        }
        AscendC::PipeBarrier<PIPE_V>();
        inQueueX.FreeTensor(xLocal);
    }

    __aicore__ inline float MaxOfTile(uint32_t count)
    {
        AscendC::LocalTensor<float> result = resultBuf.Get<float>();
        AscendC::ReduceMax(result, valueBuf.Get<float>(), workBuf.Get<float>(), count);
        return ReadResult(result);
    }

    __aicore__ inline float SumOfTile(uint32_t count)
    {
        AscendC::LocalTensor<float> result = resultBuf.Get<float>();
        AscendC::ReduceSum(result, valueBuf.Get<float>(), workBuf.Get<float>(), count);
        return ReadResult(result);
    }

    __aicore__ inline float ReadResult(const AscendC::LocalTensor<float>& result)
    {
        event_t vectorDone = static_cast<event_t>(pipe.FetchEventID(AscendC::HardEvent::V_S));
        AscendC::SetFlag<AscendC::HardEvent::V_S>(vectorDone);
        AscendC::WaitFlag<AscendC::HardEvent::V_S>(vectorDone);
        const float value = result.GetValue(0);
        event_t scalarDone = static_cast<event_t>(pipe.FetchEventID(AscendC::HardEvent::S_V));
        AscendC::SetFlag<AscendC::HardEvent::S_V>(scalarDone);
        AscendC::WaitFlag<AscendC::HardEvent::S_V>(scalarDone);
        return value;
    }

    __aicore__ inline void ExpOfTile(float rowMax, uint32_t count)
    {
        AscendC::LocalTensor<float> value = valueBuf.Get<float>();
        AscendC::Adds(value, value, -rowMax, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Exp(value, value, count);
        AscendC::PipeBarrier<PIPE_V>();
    }

    __aicore__ inline void StoreTile(uint64_t offset, float factor, uint32_t count)
    {
        AscendC::LocalTensor<float> value = valueBuf.Get<float>();
        AscendC::LocalTensor<T> yLocal = outQueueY.AllocTensor<T>();
        if constexpr (std::is_same_v<T, half>) {
            AscendC::Muls(value, value, factor, count);
            AscendC::PipeBarrier<PIPE_V>();
            AscendC::Cast(yLocal, value, AscendC::RoundMode::CAST_RINT, count);
        } else {
            AscendC::Muls(yLocal, value, factor, count);
        }
        outQueueY.EnQue<T>(yLocal);

        yLocal = outQueueY.DeQue<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPad(yGm[offset], yLocal, copyParams);
        outQueueY.FreeTensor(yLocal);
        AscendC::PipeBarrier<PIPE_ALL>();
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, ROW_BUFFERS> inQueueX;
    AscendC::TQue<AscendC::QuePosition::VECOUT, ROW_BUFFERS> outQueueY;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> valueBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> resultBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> workBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> partBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> wideBuf;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<T> yGm;
    uint32_t coreRowNum;
    uint32_t columnNum;
    uint32_t tileLength;
    uint32_t stride = 0;
    uint32_t rows = 1;
    uint32_t written = 0;
};

extern "C" __global__ __aicore__ void softmax(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelSoftmax<DTYPE_X> op;
    op.Init(x, y, tilingData.rowNum, tilingData.coreRowNum, tilingData.columnNum, tilingData.tileLength);
    op.Process();
}
