// The workspace argument of a kernel: a part reserved for the system, then the part the operator asked for.
#pragma once
#include <cstdint>

#include "asim/machine/export.h"

namespace asim {

constexpr uint64_t kSystemWorkspaceBytes = 16ull << 20;     // what GetLibApiWorkSpaceSize() reports on Atlas A2

// Start of the operator's own part, from any address inside the workspace; null stays null.
ASIM_API uint8_t *user_workspace(uint8_t *workspace);

// Start of the workspace of this launch, or null when the operator asked for none.
ASIM_API uint8_t *system_workspace();

}  // namespace asim
