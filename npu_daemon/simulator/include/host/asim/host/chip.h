// The chip of the current request, shared by everything that asks about the platform.
#pragma once

#include "platform/platform_infos_def.h"

namespace asim::host {

fe::PlatFormInfos &current_chip();

}  // namespace asim::host
