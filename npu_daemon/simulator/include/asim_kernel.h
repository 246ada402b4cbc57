// Everything that a kernel build needs: the precompiled header of kernels.
#pragma once

#include "asim/api/template_launch.h"
#include "kernel_operator.h"

// The standard library brings <limits.h>, and kernels give its names to constants of their own. One that includes it gets its macros.
#undef CHAR_BIT
#undef CHAR_MIN
#undef CHAR_MAX
#undef SCHAR_MIN
#undef SCHAR_MAX
#undef UCHAR_MAX
#undef SHRT_MIN
#undef SHRT_MAX
#undef USHRT_MAX
#undef INT_MIN
#undef INT_MAX
#undef UINT_MAX
#undef LONG_MIN
#undef LONG_MAX
#undef ULONG_MAX
#undef LLONG_MIN
#undef LLONG_MAX
#undef ULLONG_MAX
#undef __CLANG_LIMITS_H
#undef _LIMITS_H
#undef _LIBCPP_CLIMITS
