// The workspace a kernel receives.
#pragma once
#include "asim/api/language.h"
#include "asim/machine/workspace.h"

namespace AscendC {

__aicore__ inline GM_ADDR GetUserWorkspace(GM_ADDR workspace) { return asim::user_workspace(workspace); }
__aicore__ inline GM_ADDR GetSysWorkSpacePtr() { return asim::system_workspace(); }

// The launch already knows its workspace.
__aicore__ inline void SetSysWorkspace(GM_ADDR) {}
__aicore__ inline void SetSysWorkspaceForce(GM_ADDR) {}

}  // namespace AscendC

using AscendC::GetSysWorkSpacePtr;
