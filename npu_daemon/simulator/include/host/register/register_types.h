// Visibility of registration functions: all of a tiling program is one library.
#pragma once
#define FMK_FUNC_HOST_VISIBILITY
#define FMK_FUNC_DEV_VISIBILITY
