// The chip description under another name.
#pragma once
#include "platform/platform_infos_def.h"
