// Flags between cores. Each core has one counter per flag; a wait takes one from it, a meeting of cores adds one:
//   AllOfKind       every core of the kind has set the flag      -> one on each of them
//   VectorsOfGroup  both vector cores of a group have set it     -> one on each of them
//   Group           the cube core has set it                     -> one on each vector core of its group
//                   all vector cores of a group have set it      -> one on their cube core
//   Direct          one core has set it for one other of its group (library code only)
#pragma once
#include <cstdint>

#include "asim/machine/block.h"

namespace asim {

constexpr uint32_t kKernelCrossCoreFlags = 16;  // facts/npu_2201.md section 2
constexpr uint32_t kCrossCoreLimit = 15;        // largest count

// `mode` as CrossCoreSetFlag numbers it: 0, 1 or 2. Takes effect when `pipe` has done what was issued to it.
void cross_core_set(uint32_t mode, Pipe pipe, uint32_t flag);
void direct_set(Pipe pipe, Block &target, uint32_t flag);

// Before a meeting by SyncAll: none of the flags that the library takes for it on this core is in use by the kernel.
void check_sync_all_flags(bool all_kinds);

// At the end of a launch: every flag of the kernel's own that was set has been waited for.
void check_cross_core_flags_awaited();

// Blocks the core until the flag's counter is not zero, and takes one from it.
void cross_core_wait(uint32_t flag);

// The meeting of all vector cores by signals in global memory: 32 bytes for each, zero at first, and as many in UB to read
// them. `used_cores` is the number of cores that meet; 0: all.
void sync_by_signals(const int32_t *signals, const uint8_t *work, uint32_t used_cores);

}  // namespace asim
