// What the run process says about its end, one line on standard output.
#pragma once
#include "asim/machine/block.h"

namespace asim {

constexpr int kFaultExit = 3;

// Writes `kind \t call \t block, as "7" or "cube 7" \t frame offsets in the kernel library \t message`; async-signal-safe.
void write_report(const char *kind, const char *call, const char *message, void *const *frames, int frame_count);
// Likewise on standard error, to which nothing of the kernel's own goes.
void write_warning(const char *kind, const char *call, const char *message, void *const *frames, int frame_count);

// The load address of the kernel library for a kind of core, so that frames can be told as offsets in it.
void set_kernel_image(CoreKind kind, const void *address_in_image);

}  // namespace asim
