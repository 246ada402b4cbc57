#include "asim/machine/workspace.h"

#include "asim/machine/fault.h"
#include "asim/machine/gm.h"

namespace asim {

uint8_t *user_workspace(uint8_t *workspace) {
    if (workspace == nullptr) {
        return nullptr;
    }
    const GmRegion *region = find_gm_region(workspace);
    if (region == nullptr || region->role != GmRole::Workspace) {
        fault(FaultKind::RuntimeFault, "GetUserWorkspace",
              "the argument does not point into the workspace: pass the kernel's workspace parameter");
    }
    return region->base + kSystemWorkspaceBytes;
}

uint8_t *system_workspace() {
    for (size_t i = 0; i < gm_region_count(); ++i) {
        if (gm_region(i).role == GmRole::Workspace) {
            return gm_region(i).base;
        }
    }
    return nullptr;
}

}  // namespace asim
