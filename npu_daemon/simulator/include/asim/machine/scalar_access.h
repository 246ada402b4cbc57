// Accesses of the scalar unit to the unified buffer and to global memory: checked and traced; the caller moves the bytes.
#pragma once
#include <cstdint>

namespace asim {

void *scalar_ub(const char *call, void *pointer, uint32_t bytes, bool write);
void *scalar_gm(const char *call, void *pointer, uint32_t bytes, bool write);
// Where a value is about to be stored.
void *scalar_gm_store(const char *call, void *pointer, const void *value, uint32_t bytes);
// Likewise, past the data cache.
void *uncached_gm(const char *call, void *pointer, uint32_t bytes, bool write);
// By a raw pointer, of any alignment.
void *native_ub(const char *call, void *pointer, uint32_t bytes, bool write);
void *native_gm(const char *call, void *pointer, uint32_t bytes, bool write);

}  // namespace asim
