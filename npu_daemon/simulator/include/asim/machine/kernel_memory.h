// Memory that a kernel's own code reaches: the data stack of its block, the constants of its own library, the unified buffer, and
// global memory with the static arrays that lie there.
#pragma once
#include <cstdint>
#include <string>

namespace asim {

// A load or store of a kernel's own code, or of a call on its behalf where it gives an address: checked and counted.
void kernel_access(const void *address, uint64_t bytes, bool write);

// Whether accesses to memory that the simulator does not know are let through: programs with a main function of their own have
// host memory, too.
void allow_host_memory(bool allowed = true);

// Text of a kernel, of at most `most` bytes, with characters that do not print replaced.
std::string kernel_text(const char *text, uint64_t most);

}  // namespace asim
