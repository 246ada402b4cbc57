// Events between pipes, barriers and synchronisation of all blocks.
#pragma once
#include "asim/api/tensor.h"
#include "asim/machine/refusal.h"
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
    MTE2_MTE1 = PIPE_MTE2 << 4 | PIPE_MTE1, MTE2_MTE2 = PIPE_MTE2 << 4 | PIPE_MTE2, MTE2_MTE3 = PIPE_MTE2 << 4 | PIPE_MTE3,
    MTE3_S = PIPE_MTE3 << 4 | PIPE_S, MTE3_V = PIPE_MTE3 << 4 | PIPE_V, MTE3_MTE2 = PIPE_MTE3 << 4 | PIPE_MTE2,
    MTE3_MTE3 = PIPE_MTE3 << 4 | PIPE_MTE3, S_FIX = PIPE_S << 4 | PIPE_FIX, S_MTE1 = PIPE_S << 4 | PIPE_MTE1,
    S_M = PIPE_S << 4 | PIPE_M, M_S = PIPE_M << 4 | PIPE_S, M_V = PIPE_M << 4 | PIPE_V, M_M = PIPE_M << 4 | PIPE_M,
    M_MTE1 = PIPE_M << 4 | PIPE_MTE1, M_MTE2 = PIPE_M << 4 | PIPE_MTE2, M_FIX = PIPE_M << 4 | PIPE_FIX,
    MTE1_S = PIPE_MTE1 << 4 | PIPE_S, MTE1_V = PIPE_MTE1 << 4 | PIPE_V, MTE1_M = PIPE_MTE1 << 4 | PIPE_M,
    MTE1_MTE1 = PIPE_MTE1 << 4 | PIPE_MTE1, MTE1_MTE2 = PIPE_MTE1 << 4 | PIPE_MTE2, MTE1_MTE3 = PIPE_MTE1 << 4 | PIPE_MTE3,
    MTE1_FIX = PIPE_MTE1 << 4 | PIPE_FIX, MTE2_M = PIPE_MTE2 << 4 | PIPE_M, MTE2_FIX = PIPE_MTE2 << 4 | PIPE_FIX,
    MTE3_MTE1 = PIPE_MTE3 << 4 | PIPE_MTE1, V_M = PIPE_V << 4 | PIPE_M, FIX_S = PIPE_FIX << 4 | PIPE_S,
    FIX_V = PIPE_FIX << 4 | PIPE_V, FIX_M = PIPE_FIX << 4 | PIPE_M, FIX_MTE1 = PIPE_FIX << 4 | PIPE_MTE1,
    FIX_MTE2 = PIPE_FIX << 4 | PIPE_MTE2, FIX_MTE3 = PIPE_FIX << 4 | PIPE_MTE3, FIX_FIX = PIPE_FIX << 4 | PIPE_FIX,
    MAX = 0xff
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
    asim::sync_all_blocks(!isAIVOnly);
}

template <bool isAIVOnly = true>
__aicore__ inline void SyncAll(const GlobalTensor<int32_t> &signals, const LocalTensor<int32_t> &work, const int32_t used_cores = 0) {
    asim::sync_by_signals(signals.GetPhyAddr(), work.bytes(), static_cast<uint32_t>(used_cores));
}

// Signals between single blocks, by polling global memory: such a kernel ends as unsupported where it comes to one.
template <bool isAIVOnly = true>
__aicore__ inline void IBSet(const GlobalTensor<int32_t> &, const LocalTensor<int32_t> &, int32_t, int32_t) {
    asim::refuse(asim::Refusal::BlockSignals);
}
template <bool isAIVOnly = true>
__aicore__ inline void IBWait(const GlobalTensor<int32_t> &, const LocalTensor<int32_t> &, int32_t, int32_t) {
    asim::refuse(asim::Refusal::BlockSignals);
}
__aicore__ inline void InitDetermineComputeWorkspace(GlobalTensor<int32_t> &, LocalTensor<int32_t> &) {
    asim::refuse(asim::Refusal::BlockSignals);
}
__aicore__ inline void WaitPreBlock(GlobalTensor<int32_t> &, LocalTensor<int32_t> &) { asim::refuse(asim::Refusal::BlockSignals); }
__aicore__ inline void NotifyNextBlock(GlobalTensor<int32_t> &, LocalTensor<int32_t> &) { asim::refuse(asim::Refusal::BlockSignals); }

template <uint8_t modeId, pipe_t pipe>
__aicore__ inline void CrossCoreSetFlag(uint16_t flagId) {
    static_assert(modeId <= 2, "flags between cores have modes 0 (all cores of a kind), 1 (vector cores of a group), 2 (cube and vector)");
    static_assert(pipe != PIPE_S && pipe != PIPE_ALL, "a flag between cores belongs to one pipe, not the scalar unit");
    asim::cross_core_set(modeId, static_cast<asim::Pipe>(pipe), flagId);
}

// On Atlas A2 a wait holds up whatever the core would issue next, whatever mode and pipe are given.
template <uint8_t modeId = 0, pipe_t pipe = PIPE_S>
__aicore__ inline void CrossCoreWaitFlag(uint16_t flagId) {
    asim::cross_core_wait(flagId % asim::kKernelCrossCoreFlags);
}

template <typename T, CacheLine line>
__aicore__ inline void DataCacheCleanAndInvalid(const GlobalTensor<T> &tensor) {
    if (line == CacheLine::ENTIRE_DATA_CACHE) asim::clean_whole_cache();
    else asim::clean_cache(tensor.GetPhyAddr());
}
template <typename T, CacheLine line, DcciDst destination>
__aicore__ inline void DataCacheCleanAndInvalid(const GlobalTensor<T> &tensor) {
    if (destination != DcciDst::CACHELINE_UB) DataCacheCleanAndInvalid<T, line>(tensor);
}

}  // namespace AscendC

__aicore__ inline void pipe_barrier(pipe_t pipe) { asim::pipe_barrier(static_cast<asim::Pipe>(pipe)); }
__aicore__ inline void set_flag(pipe_t source, pipe_t target, int32_t event_id) {
    asim::set_flag(static_cast<asim::Pipe>(source), static_cast<asim::Pipe>(target), static_cast<uint32_t>(event_id));
}
__aicore__ inline void wait_flag(pipe_t source, pipe_t target, int32_t event_id) {
    asim::wait_flag(static_cast<asim::Pipe>(source), static_cast<asim::Pipe>(target), static_cast<uint32_t>(event_id));
}

// The message of a raw set: mode in bits 4 and 5, flag in bits 8 to 11.
__aicore__ inline void ffts_cross_core_sync(pipe_t pipe, uint64_t message) {
    asim::cross_core_set(message >> 4 & 3, static_cast<asim::Pipe>(pipe), message >> 8 & 15);
}
__aicore__ inline void wait_flag_dev(int64_t flag) { asim::cross_core_wait(static_cast<uint32_t>(flag) % asim::kKernelCrossCoreFlags); }
