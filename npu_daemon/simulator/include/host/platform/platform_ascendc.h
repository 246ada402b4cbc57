// The chip description under its path in later CANN.
#pragma once
#include "tiling/platform/platform_ascendc.h"
