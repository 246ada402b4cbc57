// The chip description under its older name.
#pragma once

#include "platform/platform_infos_def.h"
