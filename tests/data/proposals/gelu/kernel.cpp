// Device side of Gelu in its tanh form, written as x / (1 + exp(-2u)) with
// u = sqrt(2 / pi) * (x + 0.044715 * x^3), and computed in float.
#include "kernel_operator.h"

constexpr int32_t BUFFER_NUM = 2;
constexpr uint32_t REPEAT_FLOATS = 64;
constexpr uint32_t CONFLICT_PAD_BYTES = 256;

constexpr float LINEAR = -1.5957691216057308f;
constexpr float CUBIC = -1.5957691216057308f * 0.044715f;

template <typename T>
class KernelGelu {
public:
    __aicore__ inline KernelGelu() {}

    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, uint64_t totalLength, uint64_t coreLength, uint32_t tileLength)
    {
        const uint64_t begin = coreLength * AscendC::GetBlockIdx();
        const uint64_t rest = begin < totalLength ? totalLength - begin : 0;
        this->length = rest < coreLength ? rest : coreLength;
        this->tileLength = tileLength;
        xGm.SetGlobalBuffer((__gm__ T*)x + begin, this->length);
        yGm.SetGlobalBuffer((__gm__ T*)y + begin, this->length);
        if constexpr (std::is_same_v<T, half>) {
            pipe.InitBuffer(xFloatBuf, tileLength * sizeof(float));
        }
        pipe.InitBuffer(inQueueX, BUFFER_NUM, tileLength * sizeof(T));
        pipe.InitBuffer(outQueueY, BUFFER_NUM, tileLength * sizeof(T));
        // Half a turn of the bank groups away from x, which is read together with it.
        pipe.InitBuffer(padBuf, CONFLICT_PAD_BYTES);
        pipe.InitBuffer(innerBuf, tileLength * sizeof(float));
        pipe.InitBuffer(constantBuf, 2 * REPEAT_FLOATS * sizeof(float));
    }

    __aicore__ inline void Process()
    {
        AscendC::LocalTensor<float> constants = constantBuf.Get<float>();
        AscendC::Duplicate(constants, CUBIC, REPEAT_FLOATS);
        AscendC::Duplicate(constants[REPEAT_FLOATS], LINEAR, REPEAT_FLOATS);
        for (uint64_t offset = 0; offset < this->length; offset += this->tileLength) {
            const uint64_t rest = this->length - offset;
            const uint32_t count = rest < this->tileLength ? rest : this->tileLength;
            CopyIn(offset, count);
            Compute(count);
            CopyOut(offset, count);
        }
    }

private:
    __aicore__ inline void CopyIn(uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> xLocal = inQueueX.AllocTensor<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPadExtParams<T> padParams{false, 0, 0, 0};
        AscendC::DataCopyPad(xLocal, xGm[offset], copyParams, padParams);
        inQueueX.EnQue(xLocal);
    }

    __aicore__ inline void Compute(uint32_t count)
    {
        AscendC::LocalTensor<T> xLocal = inQueueX.DeQue<T>();
        AscendC::LocalTensor<T> yLocal = outQueueY.AllocTensor<T>();
        AscendC::LocalTensor<float> inner = innerBuf.Get<float>();
        if constexpr (std::is_same_v<T, half>) {
            AscendC::LocalTensor<float> xFloat = xFloatBuf.Get<float>();
            AscendC::Cast(xFloat, xLocal, AscendC::RoundMode::CAST_NONE, count);
            inQueueX.FreeTensor(xLocal);
            OnePlusExp(inner, xFloat, count);
            AscendC::Div(inner, xFloat, inner, count);
            AscendC::Cast(yLocal, inner, AscendC::RoundMode::CAST_RINT, count);
        } else {
            OnePlusExp(inner, xLocal, count);
            AscendC::Div(yLocal, xLocal, inner, count);
            inQueueX.FreeTensor(xLocal);
        }
        outQueueY.EnQue<T>(yLocal);
    }

    // inner = 1 + exp(x * (LINEAR + CUBIC * x^2))
    __aicore__ inline void OnePlusExp(const AscendC::LocalTensor<float>& inner, const AscendC::LocalTensor<float>& x,
                                      uint32_t count)
    {
        AscendC::LocalTensor<float> constants = constantBuf.Get<float>();
        AscendC::Mul(inner, x, x, count);
        const uint8_t repeats = static_cast<uint8_t>((count + REPEAT_FLOATS - 1) / REPEAT_FLOATS);
        const uint64_t mask = REPEAT_FLOATS;
        AscendC::FusedMulAdd(inner, constants, constants[REPEAT_FLOATS], mask, repeats,
                             AscendC::BinaryRepeatParams{1, 0, 0, 8, 0, 0});
        AscendC::Mul(inner, inner, x, count);
        AscendC::Exp(inner, inner, count);
        AscendC::Adds(inner, inner, 1.0f, count);
    }

    __aicore__ inline void CopyOut(uint64_t offset, uint32_t count)
    {
        AscendC::LocalTensor<T> yLocal = outQueueY.DeQue<T>();
        AscendC::DataCopyExtParams copyParams{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        AscendC::DataCopyPad(yGm[offset], yLocal, copyParams);
        outQueueY.FreeTensor(yLocal);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, BUFFER_NUM> inQueueX;
    AscendC::TQue<AscendC::QuePosition::VECOUT, BUFFER_NUM> outQueueY;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> innerBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> xFloatBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> padBuf;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> constantBuf;
    AscendC::GlobalTensor<T> xGm;
    AscendC::GlobalTensor<T> yGm;
    uint64_t length;
    uint32_t tileLength;
};

extern "C" __global__ __aicore__ void gelu(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(tilingData, tiling);
    KernelGelu<DTYPE_X> op;
    op.Init(x, y, tilingData.totalLength, tilingData.coreLength, tilingData.tileLength);
    op.Process();
}
