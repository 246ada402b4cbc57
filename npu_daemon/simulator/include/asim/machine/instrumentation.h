// Native code of a kernel is not free: the compiler reports what it executes, and it is counted and checked.
#pragma once
#include <cstdint>

namespace asim {

// A load or store of the kernel's own code. Only unified buffer and global memory count: they are what the
// scalar unit reaches through its data cache; registers and stack do not.
void native_access(const void *address, uint64_t bytes, bool write);

}  // namespace asim
