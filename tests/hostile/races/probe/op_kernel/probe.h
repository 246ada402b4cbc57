// What the kernels of this folder have in common: y = x + 1 on four blocks of two tiles each, and a workspace.
#pragma once
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t TILE = 512;          // elements
constexpr uint32_t TILES = 2;           // of one block
constexpr uint32_t BLOCKS = 4;
constexpr uint32_t SHARE = TILE * TILES;

struct Probe {
    __aicore__ inline Probe(GM_ADDR xAddr, GM_ADDR yAddr, GM_ADDR workspace)
    {
        allX.SetGlobalBuffer((__gm__ float*)xAddr, SHARE * BLOCKS);
        allY.SetGlobalBuffer((__gm__ float*)yAddr, SHARE * BLOCKS);
        scratch.SetGlobalBuffer((__gm__ float*)GetUserWorkspace(workspace), 4 * SHARE);
        block = GetBlockIdx();
        x = allX[block * SHARE];
        y = allY[block * SHARE];
    }

    // Two buffers of a tile each.
    __aicore__ inline void InitBuffers()
    {
        pipe.InitBuffer(first, TILE * sizeof(float));
        pipe.InitBuffer(second, TILE * sizeof(float));
        a = first.Get<float>();
        b = second.Get<float>();
    }

    __aicore__ inline void InitQueues(uint32_t buffers = 1)
    {
        pipe.InitBuffer(in, buffers, TILE * sizeof(float));
        pipe.InitBuffer(out, buffers, TILE * sizeof(float));
    }

    TPipe pipe;
    TBuf<TPosition::VECCALC> first, second;
    TQue<TPosition::VECIN, 2> in;
    TQue<TPosition::VECOUT, 2> out;
    LocalTensor<float> a, b;
    GlobalTensor<float> allX, allY, scratch, x, y;
    uint32_t block;
};

// `target` waits for what `event` names as its source; nothing when the kernel is the faulty one.
template <HardEvent event, bool ordered>
__aicore__ inline void Order()
{
    if constexpr (ordered) {
        SetFlag<event>(EVENT_ID0);
        WaitFlag<event>(EVENT_ID0);
    }
}

// Waits for every pipe, where a kernel is about something else.
__aicore__ inline void Settle() { PipeBarrier<PIPE_ALL>(); }

// The parts of y = x + 1 for one tile that goes through the queues.
__aicore__ inline void CopyIn(Probe& probe, uint32_t offset)
{
    LocalTensor<float> x = probe.in.AllocTensor<float>();
    DataCopy(x, probe.x[offset], TILE);
    probe.in.EnQue(x);
}

__aicore__ inline void Compute(Probe& probe)
{
    LocalTensor<float> x = probe.in.DeQue<float>();
    LocalTensor<float> y = probe.out.AllocTensor<float>();
    Adds(y, x, 1.0f, TILE);
    probe.out.EnQue(y);
    probe.in.FreeTensor(x);
}

__aicore__ inline void CopyOut(Probe& probe, uint32_t offset)
{
    LocalTensor<float> y = probe.out.DeQue<float>();
    DataCopy(probe.y[offset], y, TILE);
    probe.out.FreeTensor(y);
}

// y = x + b for one tile, with flags for all but b: one block of eight, added to each block of x.
__aicore__ inline void AddBlock(Probe& probe, uint32_t offset)
{
    DataCopy(probe.a, probe.x[offset], TILE);
    Order<HardEvent::MTE2_V, true>();
    Add(probe.a, probe.a, probe.b, 64, TILE / 64, BinaryRepeatParams(1, 1, 0, 8, 8, 0));
    Order<HardEvent::V_MTE3, true>();
    DataCopy(probe.y[offset], probe.a, TILE);
    Settle();
}

// y = x + value for the block's share, in order.
__aicore__ inline void AddToShare(Probe& probe, float value)
{
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        DataCopy(probe.a, probe.x[offset], TILE);
        Settle();
        Adds(probe.b, probe.a, value, TILE);
        Settle();
        DataCopy(probe.y[offset], probe.b, TILE);
        Settle();
    }
}

// y = x + 1 for one tile, in order; the copy out takes `count` elements.
__aicore__ inline void PlainTile(Probe& probe, uint32_t offset, uint32_t count = TILE)
{
    DataCopy(probe.a, probe.x[offset], TILE);
    Settle();
    Adds(probe.b, probe.a, 1.0f, TILE);
    Settle();
    DataCopy(probe.y[offset], probe.b, count);
    Settle();
}

__aicore__ inline void PlainShare(Probe& probe)
{
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) PlainTile(probe, offset);
}
