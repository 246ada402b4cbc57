// What every process that runs kernels needs: reports of crashes and of time that is up, and kernel libraries.
#pragma once
#include <cstdint>
#include <string>

#include "asim/machine/block.h"

namespace asim {

// What kernels print is shown from here on.
void show_device_output();

// Reports SIGSEGV and its like, and ends the process after `time_limit_ms` of CPU time, or, where the host is so busy that it does not get
// that, after `wall_limit_ms`: whoever limits the process would end it without a word.
void install_handlers(uint32_t time_limit_ms, uint32_t wall_limit_ms);

// Loads a library of kernels built for a kind of core and returns the address of one of its symbols. Faults in code of the library are
// reported relative to it, and its constants may be read as global memory. Throws std::runtime_error.
void *load_kernel_symbol(CoreKind kind, const std::string &path, const char *symbol);

// Makes the variables of the library that holds `symbol` read-only, as they are on the device, but for the static arrays
// that it keeps in global memory. Such a process must end by _exit: what libraries do at the end writes to them.
void seal_kernel_data(const void *symbol);

}  // namespace asim
