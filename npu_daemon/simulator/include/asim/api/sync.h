// Events between pipes, barriers and synchronisation of all blocks.
#pragma once
#include "asim/api/tensor.h"
#include "asim/machine/sync.h"

enum pipe_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_FIX, PIPE_ALL };
enum event_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };

namespace AscendC {

using TEventID = int8_t;

// Source pipe in the high nibble, waiting pipe in the low one.
enum class HardEvent : uint8_t {
    S_V = PIPE_S << 4 | PIPE_V, S_MTE2 = PIPE_S << 4 | PIPE_MTE2, S_MTE3 = PIPE_S << 4 | PIPE_MTE3,
    V_S = PIPE_V << 4 | PIPE_S, V_V = PIPE_V << 4 | PIPE_V, V_MTE2 = PIPE_V << 4 | PIPE_MTE2,
    V_MTE3 = PIPE_V << 4 | PIPE_MTE3, MTE2_S = PIPE_MTE2 << 4 | PIPE_S, MTE2_V = PIPE_MTE2 << 4 | PIPE_V,
    MTE2_MTE1 = PIPE_MTE2 << 4 | PIPE_MTE1, MTE2_MTE2 = PIPE_MTE2 << 4 | PIPE_MTE2,
    MTE2_MTE3 = PIPE_MTE2 << 4 | PIPE_MTE3, MTE3_S = PIPE_MTE3 << 4 | PIPE_S, MTE3_V = PIPE_MTE3 << 4 | PIPE_V,
    MTE3_MTE2 = PIPE_MTE3 << 4 | PIPE_MTE2, MTE3_MTE3 = PIPE_MTE3 << 4 | PIPE_MTE3, MAX = 0xff
};

constexpr asim::Pipe source_pipe(HardEvent event) { return static_cast<asim::Pipe>(static_cast<uint8_t>(event) >> 4); }
constexpr asim::Pipe target_pipe(HardEvent event) { return static_cast<asim::Pipe>(static_cast<uint8_t>(event) & 15); }

template <HardEvent event>
__aicore__ inline void SetFlag(int32_t event_id) {
    asim::set_flag(source_pipe(event), target_pipe(event), static_cast<uint32_t>(event_id));
}

template <HardEvent event>
__aicore__ inline void WaitFlag(int32_t event_id) {
    asim::wait_flag(source_pipe(event), target_pipe(event), static_cast<uint32_t>(event_id));
}

template <pipe_t pipe>
__aicore__ inline void PipeBarrier() {
    asim::pipe_barrier(static_cast<asim::Pipe>(pipe));
}

template <bool isAIVOnly = true>
__aicore__ inline void SyncAll() {
    asim::sync_all_blocks();
}

template <bool isAIVOnly = true>
__aicore__ inline void SyncAll(const GlobalTensor<int32_t> &, const LocalTensor<int32_t> &, const int32_t = 0) {
    asim::sync_all_blocks();
}

template <uint8_t modeId, pipe_t pipe>
__aicore__ inline void CrossCoreSetFlag(uint16_t flagId) {
    static_assert(modeId == 0, "flags between cores are simulated in mode 0 (all vector cores)");
    static_assert(pipe != PIPE_S && pipe != PIPE_ALL, "a flag between cores belongs to one pipe, not the scalar unit");
    asim::cross_core_set(flagId);
}

template <uint8_t modeId = 0, pipe_t pipe = PIPE_S>
__aicore__ inline void CrossCoreWaitFlag(uint16_t flagId) {
    asim::cross_core_wait(flagId);
}

template <typename T, CacheLine line, DcciDst destination>
__aicore__ inline void DataCacheCleanAndInvalid(const GlobalTensor<T> &) {}
template <typename T, CacheLine line>
__aicore__ inline void DataCacheCleanAndInvalid(const GlobalTensor<T> &) {}

}  // namespace AscendC

__aicore__ inline void pipe_barrier(pipe_t pipe) { asim::pipe_barrier(static_cast<asim::Pipe>(pipe)); }
__aicore__ inline void set_flag(pipe_t source, pipe_t target, int32_t event_id) {
    asim::set_flag(static_cast<asim::Pipe>(source), static_cast<asim::Pipe>(target), static_cast<uint32_t>(event_id));
}
__aicore__ inline void wait_flag(pipe_t source, pipe_t target, int32_t event_id) {
    asim::wait_flag(static_cast<asim::Pipe>(source), static_cast<asim::Pipe>(target), static_cast<uint32_t>(event_id));
}
