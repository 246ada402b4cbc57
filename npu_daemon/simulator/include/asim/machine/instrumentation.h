// What a kernel's own code does is counted and checked: it is compiled to call these functions.
//
// Its code reaches the data stack of its block, the constants of its own library, the unified buffer, and global memory with the
// static arrays that lie there; all else is a fault. Nobody else calls these functions: a kernel that names them is refused.
#pragma once
#include <cstdint>

#include "asim/machine/export.h"

extern "C" {

// Directly before a load or store, and before a call that reads `bytes` behind a pointer argument. They return the address that
// they have checked, and no other is used: code generation may take an undefined pointer for another one each time.
ASIM_API void *asim_load(void *address, uint64_t bytes);
ASIM_API void *asim_store(void *address, uint64_t bytes);

// In the place of memory functions: priced as the loop of words that they are.
ASIM_API void asim_memcpy(void *destination, const void *source, uint64_t bytes);
ASIM_API void asim_memmove(void *destination, const void *source, uint64_t bytes);
ASIM_API void asim_memset(void *destination, int value, uint64_t bytes);
ASIM_API int asim_memcmp(const void *first, const void *second, uint64_t bytes);

// At the start of each basic block: how many instructions of each of the first eight scalar classes it has, a byte for each, the
// lowest first.
ASIM_API void asim_count(uint64_t packed);

// Where a build marks its blocks, at the start of each: says that the block of that number was reached (machine/reached.h).
ASIM_API void asim_reached(uint32_t number);

// Before each call by a pointer: it has to be one of the functions of the module that have the type of the call. Returns it.
ASIM_API const void *asim_call(const void *target, const void *const *targets, uint64_t count);

// Returns its argument, of which code generation knows nothing then: for the condition of a switch, and for arguments with
// fewer bits than a register. What it concludes of undefined values would leave range checks and masks out.
ASIM_API uint64_t asim_value(uint64_t value);

// In the place of a division or remainder of integers whose divisor may be 0 or -1. `how` has the bits of the operands in its
// lowest byte, then whether they are signed, then whether the remainder is asked for. The scalar unit goes on after a division by 0
// (docs/simulator.md): here the quotient is 0 and the remainder the dividend. The quotient that does not fit wraps.
ASIM_API uint64_t asim_divide(uint64_t dividend, uint64_t divisor, uint64_t how);

// Where code must not be reached.
[[noreturn]] ASIM_API void asim_unreachable();
}
