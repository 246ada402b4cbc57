// What the kernels with cube cores have in common.
#pragma once
#include "probe.h"

constexpr uint32_t SIDE = 32;           // of the matrices that cube cores multiply
constexpr uint32_t SQUARE = SIDE * SIDE;

// The steps of a product of two matrices of half, which both come from the input; nothing orders them.
struct CubeProbe {
    __aicore__ inline explicit CubeProbe(Probe& probe)
    {
        input.SetGlobalBuffer((__gm__ half*)probe.allX.GetPhyAddr(), 2 * SHARE * BLOCKS);
        product = probe.scratch[probe.block * SQUARE];
        probe.pipe.InitBuffer(bufferA1, SQUARE * sizeof(half));
        probe.pipe.InitBuffer(bufferA2, SQUARE * sizeof(half));
        probe.pipe.InitBuffer(bufferB2, SQUARE * sizeof(half));
        probe.pipe.InitBuffer(bufferC, SQUARE * sizeof(float));
        a1 = bufferA1.Get<half>();
        a2 = bufferA2.Get<half>();
        b2 = bufferB2.Get<half>();
        c = bufferC.Get<float>();
    }

    __aicore__ inline void Load() { DataCopy(a1, input, SQUARE); }
    __aicore__ inline void Split()
    {
        const LoadData2DParams whole(0, SQUARE / 256, 1, 0, 0, false, 0);
        LoadData(a2, a1, whole);
        LoadData(b2, a1, whole);
    }
    __aicore__ inline void Multiply(bool first = true, uint8_t unitFlag = 0)
    {
        Mmad(c, a2, b2, MmadParams(SIDE, SIDE, SIDE, unitFlag, false, first));
    }
    __aicore__ inline void Store(uint8_t unitFlag = 0)
    {
        FixpipeParamsV220 params(SIDE, SIDE, SIDE, SIDE, false);
        params.unitFlag = unitFlag;
        Fixpipe(product, c, params);
    }
    __aicore__ inline void Prepare()
    {
        Load();
        Settle();
        Split();
        Settle();
    }
    // The product, in order up to its way out.
    __aicore__ inline void Compute()
    {
        Prepare();
        Multiply();
        Order<HardEvent::M_FIX, true>();
        Store();
    }

    TBuf<TPosition::A1> bufferA1;
    TBuf<TPosition::A2> bufferA2;
    TBuf<TPosition::B2> bufferB2;
    TBuf<TPosition::CO1> bufferC;
    LocalTensor<half> a1, a2, b2;
    LocalTensor<float> c;
    GlobalTensor<half> input;
    GlobalTensor<float> product;
};

// What vector cores do where a kernel is about cube cores.
__aicore__ inline void VectorShare(Probe& probe)
{
    if ASCEND_IS_AIV {
        probe.InitBuffers();
        PlainShare(probe);
    }
}
