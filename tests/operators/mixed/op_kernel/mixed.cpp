// Device side of Mixed: y = 2 a b. A cube core multiplies 128 rows of a with b in steps of k; its two vector cores wait
// for the product, double half of it each, and tell the cube core when they are done.
#include "kernel_operator.h"

constexpr uint32_t ROWS = 128;
constexpr uint32_t STEP = 64;
constexpr uint8_t UNIT_FLAG = 0;
constexpr uint16_t PRODUCT_READY = 3;
constexpr uint16_t PRODUCT_USED = 4;
using namespace AscendC;

class Multiplier {
public:
    __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR product, uint32_t k, uint32_t n)
    {
        this->k = k;
        this->n = n;
        aGm.SetGlobalBuffer((__gm__ half*)a + GetBlockIdx() * ROWS * k);
        bGm.SetGlobalBuffer((__gm__ half*)b);
        productGm.SetGlobalBuffer((__gm__ float*)product + GetBlockIdx() * ROWS * n);
        pipe.InitBuffer(inA1, 2, ROWS * STEP * sizeof(half));
        pipe.InitBuffer(inB1, 2, STEP * n * sizeof(half));
        pipe.InitBuffer(inA2, 2, ROWS * STEP * sizeof(half));
        pipe.InitBuffer(inB2, 2, STEP * n * sizeof(half));
        pipe.InitBuffer(outC, ROWS * n * sizeof(float));
    }

    __aicore__ inline void Process()
    {
        LocalTensor<float> c = outC.Get<float>();
        for (uint32_t first = 0; first < k; first += STEP) {
            Load(first);
            Split();
            Multiply(c, first);
        }
        if (UNIT_FLAG == 0) {
            SetFlag<HardEvent::M_FIX>(EVENT_ID0);
            WaitFlag<HardEvent::M_FIX>(EVENT_ID0);
        }
        Store(c);
        CrossCoreSetFlag<2, PIPE_FIX>(PRODUCT_READY);
        CrossCoreWaitFlag(PRODUCT_USED);
    }

private:
    __aicore__ inline void Load(uint32_t first)
    {
        LocalTensor<half> a = inA1.AllocTensor<half>();
        LocalTensor<half> b = inB1.AllocTensor<half>();
        DataCopy(a, aGm[first], Nd2NzParams(1, ROWS, STEP, 0, k, ROWS, 1, 0));
        DataCopy(b, bGm[first * n], Nd2NzParams(1, STEP, n, 0, n, STEP, 1, 0));
        inA1.EnQue(a);
        inB1.EnQue(b);
    }

    __aicore__ inline void Split()
    {
        LocalTensor<half> a1 = inA1.DeQue<half>();
        LocalTensor<half> b1 = inB1.DeQue<half>();
        LocalTensor<half> a2 = inA2.AllocTensor<half>();
        LocalTensor<half> b2 = inB2.AllocTensor<half>();
        for (uint32_t row = 0; row < ROWS / 16; ++row) {
            LoadData(a2[row * 16 * STEP], a1[row * 256], LoadData2DParams(0, STEP / 16, ROWS / 16, 0, 0, false, 0));
        }
        for (uint32_t row = 0; row < STEP / 16; ++row) {
            LoadData(b2[row * 16 * n], b1[row * 256], LoadData2DParams(0, n / 16, STEP / 16, 0, 0, true, 0));
        }
        inA2.EnQue(a2);
        inB2.EnQue(b2);
        inA1.FreeTensor(a1);
        inB1.FreeTensor(b1);
    }

    __aicore__ inline void Multiply(LocalTensor<float> c, uint32_t first)
    {
        LocalTensor<half> a2 = inA2.DeQue<half>();
        LocalTensor<half> b2 = inB2.DeQue<half>();
        MmadParams params;
        params.m = ROWS;
        params.n = n;
        params.k = STEP;
        params.cmatrixInitVal = first == 0;
        params.unitFlag = UNIT_FLAG == 0 ? 0 : first + STEP < k ? 2 : 3;
        Mmad(c, a2, b2, params);
        inA2.FreeTensor(a2);
        inB2.FreeTensor(b2);
    }

    __aicore__ inline void Store(LocalTensor<float> c)
    {
        FixpipeParamsV220 params(n, ROWS, ROWS, n, false);
        params.unitFlag = UNIT_FLAG;
        Fixpipe(productGm, c, params);
    }

    TPipe pipe;
    TQue<TPosition::A1, 2> inA1;
    TQue<TPosition::B1, 2> inB1;
    TQue<TPosition::A2, 2> inA2;
    TQue<TPosition::B2, 2> inB2;
    TBuf<TPosition::CO1> outC;
    GlobalTensor<half> aGm, bGm;
    GlobalTensor<float> productGm;
    uint32_t k;
    uint32_t n;
};

class Doubler {
public:
    __aicore__ inline void Process(GM_ADDR product, GM_ADDR y, uint32_t n)
    {
        const uint32_t length = ROWS / GetSubBlockNum() * n;
        GlobalTensor<float> productGm, yGm;
        productGm.SetGlobalBuffer((__gm__ float*)product + GetBlockIdx() * length);
        yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * length);
        pipe.InitBuffer(bound, 1, length * sizeof(float));
        CrossCoreWaitFlag(PRODUCT_READY);
        LocalTensor<float> x = bound.AllocTensor<float>();
        DataCopy(x, productGm, length);
        bound.EnQue<TPosition::GM, TPosition::VECIN, float>(x);
        x = bound.DeQue<TPosition::GM, TPosition::VECIN, float>();
        Muls(x, x, 2.0f, length);
        bound.EnQue<TPosition::VECOUT, TPosition::GM, float>(x);
        x = bound.DeQue<TPosition::VECOUT, TPosition::GM, float>();
        DataCopy(yGm, x, length);
        bound.FreeTensor(x);
        CrossCoreSetFlag<2, PIPE_MTE3>(PRODUCT_USED);
    }

private:
    TPipe pipe;
    TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> bound;
};

extern "C" __global__ __aicore__ void mixed(GM_ADDR a, GM_ADDR b, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    GET_TILING_DATA(tilingData, tiling);
    GM_ADDR product = GetUserWorkspace(workspace);
    if ASCEND_IS_AIC {
        Multiplier op;
        op.Init(a, b, product, tilingData.k, tilingData.n);
        op.Process();
    }
    if ASCEND_IS_AIV {
        Doubler op;
        op.Process(product, y, tilingData.n);
    }
}
