// Device side of Attention: y = softmax(scale * q * k^T) * v for each head. A vector core takes one tile of queries
// at a time: it has the cube core multiply into the workspace, normalises the scores row by row, and has the
// cube core multiply the result by the values.
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

constexpr int32_t BUFFER_NUM = 1;

constexpr uint32_t BLOCK_BYTES = 32;
constexpr uint32_t REPEAT_FLOATS = 64;
constexpr uint32_t ALIGN_ELEMS = 64;

class KernelAttention {
public:
    using Rows = AscendC::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, half>;
    using Transposed = AscendC::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, half, true>;
    using Scores = AscendC::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, float>;

    __aicore__ inline KernelAttention() {}

    __aicore__ inline void Init(GM_ADDR q, GM_ADDR k, GM_ADDR v, GM_ADDR y, GM_ADDR workspace,
                                const AttentionTilingData& tiling, AscendC::TPipe* pipe)
    {
        this->pipe = pipe;
        this->headNum = tiling.headNum;
        this->queryNum = tiling.queryNum;
        this->keyNum = tiling.keyNum;
        this->depth = tiling.depth;
        this->tileRows = tiling.tileRows;
        this->coreNum = tiling.coreNum;
        this->scale = tiling.scale;
        const uint64_t scoreNum = static_cast<uint64_t>(tiling.tileRows) * tiling.keyNum;
        const uint64_t block = AscendC::GetBlockIdx();
        GM_ADDR own = AscendC::GetUserWorkspace(workspace) + block * scoreNum * (sizeof(float) + sizeof(half));
        scoreGm.SetGlobalBuffer((__gm__ float*)own, scoreNum);
        probabilityGm.SetGlobalBuffer((__gm__ half*)(own + scoreNum * sizeof(float)), scoreNum);
        qGm.SetGlobalBuffer((__gm__ half*)q);
        kGm.SetGlobalBuffer((__gm__ half*)k);
        vGm.SetGlobalBuffer((__gm__ half*)v);
        yGm.SetGlobalBuffer((__gm__ half*)y);
        const uint32_t tileLength = (tiling.keyNum + ALIGN_ELEMS - 1) / ALIGN_ELEMS * ALIGN_ELEMS;
        pipe->InitBuffer(inQueueScore, BUFFER_NUM, tileLength * sizeof(float));
        pipe->InitBuffer(outQueueProbability, BUFFER_NUM, tileLength * sizeof(half));
        pipe->InitBuffer(valueBuf, tileLength * sizeof(float));
        const uint32_t workBytes = (tileLength / REPEAT_FLOATS + 1) * 2 * sizeof(float);
        pipe->InitBuffer(workBuf, (workBytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES);
        pipe->InitBuffer(resultBuf, BLOCK_BYTES);
    }

    __aicore__ inline void Process()
    {
        const uint32_t headTiles = (this->queryNum + this->tileRows - 1) / this->tileRows;
        const uint32_t taskNum = this->headNum * headTiles;
        if (AscendC::GetBlockIdx() >= this->coreNum) {
            return;
        }
        for (uint32_t task = AscendC::GetBlockIdx(); task < taskNum; task += this->coreNum) {
            const uint32_t head = task / headTiles;
            const uint32_t first = task % headTiles * this->tileRows;
            const uint32_t rest = this->queryNum - first;
            ProcessTile(head, first, rest < this->tileRows ? rest : this->tileRows);
        }
        scoreMatmul.End();
        outputMatmul.End();
    }

    AscendC::Matmul<Rows, Transposed, Scores> scoreMatmul;
    AscendC::Matmul<Rows, Rows, Rows> outputMatmul;

private:
    __aicore__ inline void ProcessTile(uint32_t head, uint32_t first, uint32_t rows)
    {
        const uint64_t query = (static_cast<uint64_t>(head) * this->queryNum + first) * this->depth;
        const uint64_t key = static_cast<uint64_t>(head) * this->keyNum * this->depth;
        scoreMatmul.SetTail(rows, this->keyNum, this->depth);
        scoreMatmul.SetTensorA(qGm[query]);
        scoreMatmul.SetTensorB(kGm[key], true);
        scoreMatmul.IterateAll(scoreGm);
        for (uint32_t row = 0; row < rows; row++) {
            CopyIn(static_cast<uint64_t>(row) * this->keyNum);
            Normalise();
            CopyOut(static_cast<uint64_t>(row) * this->keyNum);
        }
        // The cube core reads what the copies have written.
        AscendC::PipeBarrier<PIPE_ALL>();
        outputMatmul.SetTail(rows, this->depth, this->keyNum);
        outputMatmul.SetTensorA(probabilityGm);
        outputMatmul.SetTensorB(vGm[key]);
        outputMatmul.IterateAll(yGm[query]);
    }

    __aicore__ inline void CopyIn(uint64_t offset)
    {
        AscendC::LocalTensor<float> local = inQueueScore.AllocTensor<float>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(this->keyNum * sizeof(float)), 0, 0, 0};
        AscendC::DataCopyPadExtParams<float> padParams{false, 0, 0, 0};
        AscendC::DataCopyPad(local, scoreGm[offset], copyParams, padParams);
        inQueueScore.EnQue(local);
    }

    __aicore__ inline void Normalise()
    {
        AscendC::LocalTensor<float> score = inQueueScore.DeQue<float>();
        AscendC::LocalTensor<half> probability = outQueueProbability.AllocTensor<half>();
        AscendC::LocalTensor<float> value = valueBuf.Get<float>();
        AscendC::LocalTensor<float> result = resultBuf.Get<float>();
        AscendC::Muls(value, score, this->scale, this->keyNum);
        AscendC::PipeBarrier<PIPE_V>();
        inQueueScore.FreeTensor(score);
        AscendC::ReduceMax(result, value, workBuf.Get<float>(), this->keyNum);
        AscendC::Adds(value, value, -FirstOf(result), this->keyNum);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Exp(value, value, this->keyNum);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::ReduceSum(result, value, workBuf.Get<float>(), this->keyNum);
        AscendC::Muls(value, value, 1.0f / FirstOf(result), this->keyNum);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Cast(probability, value, AscendC::RoundMode::CAST_RINT, this->keyNum);
        outQueueProbability.EnQue(probability);
    }

    __aicore__ inline void CopyOut(uint64_t offset)
    {
        AscendC::LocalTensor<half> local = outQueueProbability.DeQue<half>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(this->keyNum * sizeof(half)), 0, 0, 0};
        AscendC::DataCopyPad(probabilityGm[offset], local, copyParams);
        outQueueProbability.FreeTensor(local);
    }

    __aicore__ inline float FirstOf(const AscendC::LocalTensor<float>& result)
    {
        event_t vectorDone = static_cast<event_t>(pipe->FetchEventID(AscendC::HardEvent::V_S));
        AscendC::SetFlag<AscendC::HardEvent::V_S>(vectorDone);
        AscendC::WaitFlag<AscendC::HardEvent::V_S>(vectorDone);
        const float value = result.GetValue(0);
        event_t scalarDone = static_cast<event_t>(pipe->FetchEventID(AscendC::HardEvent::S_V));
        AscendC::SetFlag<AscendC::HardEvent::S_V>(scalarDone);
        AscendC::WaitFlag<AscendC::HardEvent::S_V>(scalarDone);
        return value;
    }

    AscendC::TPipe* pipe;
    AscendC::TQue<AscendC::TPosition::VECIN, BUFFER_NUM> inQueueScore;
    AscendC::TQue<AscendC::TPosition::VECOUT, BUFFER_NUM> outQueueProbability;
    AscendC::TBuf<AscendC::TPosition::VECCALC> valueBuf;
    AscendC::TBuf<AscendC::TPosition::VECCALC> workBuf;
    AscendC::TBuf<AscendC::TPosition::VECCALC> resultBuf;
    AscendC::GlobalTensor<half> qGm;
    AscendC::GlobalTensor<half> kGm;
    AscendC::GlobalTensor<half> vGm;
    AscendC::GlobalTensor<half> yGm;
    AscendC::GlobalTensor<float> scoreGm;
    AscendC::GlobalTensor<half> probabilityGm;
    uint32_t headNum;
    uint32_t queryNum;
    uint32_t keyNum;
    uint32_t depth;
    uint32_t tileRows;
    uint32_t coreNum;
    float scale;
};

extern "C" __global__ __aicore__ void attention(GM_ADDR q, GM_ADDR k, GM_ADDR v, GM_ADDR y, GM_ADDR workspace,
                                                GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    AscendC::TPipe pipe;
    KernelAttention op;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), op.scoreMatmul, &tilingData.scorePlan, op.outputMatmul,
                      &tilingData.outputPlan);
    op.Init(q, k, v, y, workspace, tilingData, &pipe);
    op.Process();
}
