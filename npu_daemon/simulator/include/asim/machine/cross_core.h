// Flags between cores. Each core has one counter per flag; a wait takes one from it, a meeting of cores adds one:
//   AllOfKind       every core of the kind has set the flag      -> one on each of them
//   VectorsOfGroup  both vector cores of a group have set it     -> one on each of them
//   Group           the cube core has set it                     -> one on each vector core of its group
//                   all vector cores of a group have set it      -> one on their cube core
//   Direct          one core has set it for one other of its group (library code only)
#pragma once
#include <cstdint>

#include "asim/machine/block.h"
#include "asim/machine/sync.h"

namespace asim {

constexpr uint32_t kCrossCoreLimit = 15;        // largest count

void direct_set(Pipe pipe, Block &target, uint32_t flag);

// Before a meeting by SyncAll: none of the flags that the library takes for it on this core is in use by the kernel.
void check_sync_all_flags(bool all_kinds);

// At the end of a launch: every flag of the kernel's own that was set has been waited for.
void check_cross_core_flags_awaited();

// As cross_core_wait, for any flag, those of the library included.
void await_cross_core(uint32_t flag);

}  // namespace asim
