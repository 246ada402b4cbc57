// Where the variables of a kernel's own code lie that have an address: a stack of its block, apart from that of return addresses.
#pragma once
#include <cstdint>

// What compiled code (SafeStack) takes its frames from; each block has its own.
extern "C" __attribute__((visibility("default"), tls_model("initial-exec"))) thread_local void *__safestack_unsafe_stack_ptr;

namespace asim {

// Lays a copy of values that a kernel gets by address on the stack of the running block; its address.
void *push_on_data_stack(const void *values, uint64_t bytes);

}  // namespace asim
