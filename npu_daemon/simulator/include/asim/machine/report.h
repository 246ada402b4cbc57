// What the run process says about its end, one line on standard output.
#pragma once

namespace asim {

constexpr int kFaultExit = 3;

// Writes `kind \t call \t block \t frame offsets in the kernel library \t message`; async-signal-safe.
void write_report(const char *kind, const char *call, const char *message, void *const *frames, int frame_count);

// The kernel library's load address, so that frames can be told as offsets in it.
void set_kernel_image(const void *address_in_image);

}  // namespace asim
