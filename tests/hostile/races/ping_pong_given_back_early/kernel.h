// Two buffers in turn, each given back to the copies before the instruction that reads it.
#include "probe.h"

namespace ping_pong_given_back_early {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    TBuf<TPosition::VECCALC> third;
    probe.InitBuffers();
    probe.pipe.InitBuffer(third, TILE * sizeof(float));
    const auto sum = third.Get<float>();
    constexpr uint32_t PIECE = TILE / 2;
    SetFlag<HardEvent::V_MTE2>(EVENT_ID0);
    SetFlag<HardEvent::V_MTE2>(EVENT_ID1);
    for (uint32_t piece = 0; piece < SHARE / PIECE; ++piece) {
        const int32_t turn = piece % 2;
        const auto x = turn == 0 ? probe.a : probe.b;
        WaitFlag<HardEvent::V_MTE2>(turn);
        DataCopy(x, probe.x[piece * PIECE], PIECE);
        Order<HardEvent::MTE2_V, true>();
        Order<HardEvent::MTE3_V, true>();
        if (!ordered) SetFlag<HardEvent::V_MTE2>(turn);
        Adds(sum, x, 1.0f, PIECE);
        if (ordered) SetFlag<HardEvent::V_MTE2>(turn);
        Order<HardEvent::V_MTE3, true>();
        DataCopy(probe.y[piece * PIECE], sum, PIECE);
    }
    WaitFlag<HardEvent::V_MTE2>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE2>(EVENT_ID1);
}
} // namespace ping_pong_given_back_early
