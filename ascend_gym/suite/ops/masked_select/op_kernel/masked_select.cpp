// Device side of MaskedSelect: the elements of x whose mask is not zero, one behind the other. The cores count theirs, tell each
// other how many they have, and then know where to write.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 1;

constexpr uint32_t BLOCK_BYTES = 32;
constexpr uint32_t REPEAT_FLOATS = 64;
constexpr uint32_t SLOT_FLOATS = 8; // of one core in the workspace
constexpr uint32_t MAX_CORES = 64;
constexpr uint32_t COMPARE_ELEMS = 128; // 256 bytes of half

template <typename T>
class KernelMaskedSelect {
public:
    __aicore__ inline KernelMaskedSelect() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR mask, GM_ADDR y, GM_ADDR workspace, const MaskedSelectTilingData& tiling)
    {
        const uint64_t block = AscendC::GetBlockIdx();
        const uint64_t bigBefore = block < tiling.bigCoreNum ? block : tiling.bigCoreNum;
        this->begin = block * tiling.smallCoreLength + bigBefore * tiling.unitLength;
        const uint64_t share = tiling.smallCoreLength + (block < tiling.bigCoreNum ? tiling.unitLength : 0);
        const uint64_t rest = tiling.totalLength - this->begin;
        this->length = rest < share ? rest : share;
        const uint32_t tileLength = tiling.tileLength;
        this->tileLength = tileLength;
        xGm.SetGlobalBuffer((__gm__ T*)x);
        maskGm.SetGlobalBuffer((__gm__ uint8_t*)mask);
        yGm.SetGlobalBuffer((__gm__ T*)y);
        partialGm.SetGlobalBuffer((__gm__ float*)AscendC::GetUserWorkspace(workspace));
        pipe.InitBuffer(inQueueX, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(inQueueMask, BUFFER_NUM, tileLength);
        pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(flagBuf, tileLength * sizeof(half));
        pipe.InitBuffer(numberFlagBuf, tileLength * sizeof(float));
        pipe.InitBuffer(bitBuf, tileLength);
        pipe.InitBuffer(numberBuf, BLOCK_BYTES);
        pipe.InitBuffer(partialBuf, MAX_CORES * SLOT_FLOATS * sizeof(float));
        // ReduceSum keeps a value per repeat, ReduceMax an index beside it.
        const uint32_t workBytes = (tileLength / REPEAT_FLOATS + 1) * 2 * sizeof(float);
        pipe.InitBuffer(workBuf, (workBytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES);
        pipe.InitBuffer(resultBuf, BLOCK_BYTES);
    }

    __aicore__ inline void Process()
    {
        KeepPartial(AscendC::GetBlockIdx(), CountSelected());
        AscendC::SyncAll();
        const uint32_t before = AscendC::GetBlockIdx();
        uint64_t target = static_cast<int32_t>(before > 0 ? SumOfPartials(0, before) : 0.0f);
        for (uint64_t offset = 0; offset < this->length; offset += this->tileLength) {
            target += SelectTile(this->begin + offset, CountFrom(offset), target);
        }
    }

private:
    using Pattern = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;

    __aicore__ inline uint32_t CountFrom(uint64_t offset)
    {
        const uint64_t rest = this->length - offset;
        return rest < this->tileLength ? rest : this->tileLength;
    }

    template <typename U>
    __aicore__ inline void CopyIn(AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM>& queue,
                                  const AscendC::GlobalTensor<U>& source, uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<U> local = queue.template AllocTensor<U>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(U)), 0, 0, 0};
        AscendC::DataCopyPadExtParams<U> padParams{false, 0, 0, 0};
        AscendC::DataCopyPad(local, source[offset], copyParams, padParams);
        queue.EnQue(local);
    }

    __aicore__ inline void LoadFlags(uint64_t offset, uint32_t count)
    {
        CopyIn(inQueueMask, maskGm, offset, count);
        AscendC::LocalTensor<uint8_t> maskLocal = inQueueMask.template DeQue<uint8_t>();
        AscendC::Cast(flagBuf.Get<half>(), maskLocal, AscendC::RoundMode::CAST_NONE, count);
        AscendC::PipeBarrier<PIPE_V>();
        inQueueMask.FreeTensor(maskLocal);
    }

    __aicore__ inline float CountSelected()
    {
        AscendC::LocalTensor<float> numbers = numberFlagBuf.Get<float>();
        float selected = 0.0f;
        for (uint64_t offset = 0; offset < this->length; offset += this->tileLength) {
            const uint32_t count = CountFrom(offset);
            LoadFlags(this->begin + offset, count);
            AscendC::Cast(numbers, flagBuf.Get<half>(), AscendC::RoundMode::CAST_NONE, count);
            AscendC::PipeBarrier<PIPE_V>();
            selected += Sum(numbers, count);
        }
        return selected;
    }

    __aicore__ inline uint64_t SelectTile(uint64_t offset, uint32_t count, uint64_t target)
    {
        LoadFlags(offset, count);
        CopyIn(inQueueX, xGm, offset, count);
        AscendC::LocalTensor<T> xLocal = inQueueX.template DeQue<T>();
        AscendC::LocalTensor<T> yLocal = outQueueY.template AllocTensor<T>();
        const uint32_t compared = (count + COMPARE_ELEMS - 1) / COMPARE_ELEMS * COMPARE_ELEMS;
        AscendC::CompareScalar(bitBuf.Get<uint8_t>(), flagBuf.Get<half>(), static_cast<half>(0.0f),
                               AscendC::CMPMODE::NE, compared);
        AscendC::PipeBarrier<PIPE_V>();
        uint64_t selected = 0;
        AscendC::GatherMaskParams params{1, 1, 8, 8};
        AscendC::GatherMask(yLocal, xLocal, bitBuf.Get<Pattern>(), true, count, params, selected);
        outQueueY.EnQue(yLocal);
        inQueueX.FreeTensor(xLocal);
        yLocal = outQueueY.template DeQue<T>();
        if (selected > 0) {
            AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(selected * sizeof(T)), 0, 0, 0};
            AscendC::DataCopyPad(yGm[target], yLocal, copyParams);
        }
        outQueueY.FreeTensor(yLocal);
        return selected;
    }

    // Writes one number to a place of its own in the workspace.
    __aicore__ inline void KeepPartial(uint32_t place, float number)
    {
        AscendC::LocalTensor<float> local = numberBuf.Get<float>();
        local.SetValue(0, number);
        event_t scalarDone = static_cast<event_t>(pipe.FetchEventID(AscendC::HardEvent::S_MTE3));
        AscendC::SetFlag<AscendC::HardEvent::S_MTE3>(scalarDone);
        AscendC::WaitFlag<AscendC::HardEvent::S_MTE3>(scalarDone);
        AscendC::DataCopy(partialGm[place * SLOT_FLOATS], local, SLOT_FLOATS);
        AscendC::PipeBarrier<PIPE_ALL>();
    }

    __aicore__ inline float SumOfPartials(uint32_t first, uint32_t count)
    {
        AscendC::LocalTensor<float> partials = partialBuf.Get<float>();
        AscendC::DataCopy(partials, partialGm[first * SLOT_FLOATS], count * SLOT_FLOATS);
        event_t copyDone = static_cast<event_t>(pipe.FetchEventID(AscendC::HardEvent::MTE2_S));
        AscendC::SetFlag<AscendC::HardEvent::MTE2_S>(copyDone);
        AscendC::WaitFlag<AscendC::HardEvent::MTE2_S>(copyDone);
        float sum = 0.0f;
        for (uint32_t i = 0; i < count; i++) {
            sum += partials.GetValue(i * SLOT_FLOATS);
        }
        return sum;
    }

    __aicore__ inline float Sum(const AscendC::LocalTensor<float>& value, uint32_t count)
    {
        AscendC::LocalTensor<float> result = resultBuf.Get<float>();
        AscendC::ReduceSum(result, value, workBuf.Get<float>(), count);
        return FirstOf(result);
    }

    __aicore__ inline float FirstOf(const AscendC::LocalTensor<float>& result)
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

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueX;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueMask;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueY;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> flagBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> numberFlagBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> bitBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> numberBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> partialBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> resultBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> workBuf;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<uint8_t> maskGm;
    AscendC::GlobalTensor<T> yGm;
    AscendC::GlobalTensor<float> partialGm;
    uint64_t begin;
    uint64_t length;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void masked_select(GM_ADDR x, GM_ADDR mask, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelMaskedSelect<DTYPE_X> op;
    op.Init(x, mask, y, workspace, tilingData);
    op.Process();
}
