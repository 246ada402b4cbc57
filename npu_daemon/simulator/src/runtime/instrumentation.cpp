// Entry points that the compiler's instrumentation of candidate code calls (-fsanitize-coverage=trace-pc and
// -fsanitize=kernel-address in its outlined form), and the memory functions that candidates are linked to.
#include "asim/machine/instrumentation.h"

#include <algorithm>
#include <cstring>

#include "asim/check/check.h"
#include "asim/machine/block.h"
#include "asim/machine/gm.h"
#include "asim/machine/local_memory.h"
#include "asim/machine/sync.h"

namespace asim {

namespace {

constexpr uint64_t kWordBytes = 8;

void access_words(const char *call, uint8_t *address, uint64_t bytes, bool write,
                  void *(*access)(const char *, void *, uint32_t, bool)) {
    for (uint64_t offset = 0; offset < bytes; offset += kWordBytes) {
        access(call, address + offset, static_cast<uint32_t>(std::min(kWordBytes, bytes - offset)), write);
    }
}

}  // namespace

void native_access(const void *address, uint64_t bytes, bool write) {
    auto *pointer = static_cast<uint8_t *>(const_cast<void *>(address));
    const char *call = write ? "store through a raw pointer" : "load through a raw pointer";
    if (block().ub != nullptr && pointer >= block().ub && pointer < block().ub + block().ub_bytes) {
        access_words(call, pointer, bytes, write, native_ub);
    } else if (local_space_of(address) != Space::Gm) {
        fault(FaultKind::RuntimeFault, call, "the scalar unit does not reach %s: move the data with instructions",
              memory_name(local_space_of(address)));
    } else {
        const GmRegion *region = find_gm_region(address);
        const bool counted = region != nullptr && region->role != GmRole::Constant;  // tables of the code are cached
        if (counted) access_words(call, pointer, bytes, write, native_gm);
    }
}

}  // namespace asim

extern "C" {

void __sanitizer_cov_trace_pc() { ++asim::g_block->scalar_blocks; }

void __asan_load1_noabort(const void *address) { asim::native_access(address, 1, false); }
void __asan_load2_noabort(const void *address) { asim::native_access(address, 2, false); }
void __asan_load4_noabort(const void *address) { asim::native_access(address, 4, false); }
void __asan_load8_noabort(const void *address) { asim::native_access(address, 8, false); }
void __asan_load16_noabort(const void *address) { asim::native_access(address, 16, false); }
void __asan_loadN_noabort(const void *address, uint64_t bytes) { asim::native_access(address, bytes, false); }
void __asan_store1_noabort(const void *address) { asim::native_access(address, 1, true); }
void __asan_store2_noabort(const void *address) { asim::native_access(address, 2, true); }
void __asan_store4_noabort(const void *address) { asim::native_access(address, 4, true); }
void __asan_store8_noabort(const void *address) { asim::native_access(address, 8, true); }
void __asan_store16_noabort(const void *address) { asim::native_access(address, 16, true); }
void __asan_storeN_noabort(const void *address, uint64_t bytes) { asim::native_access(address, bytes, true); }
void __asan_handle_no_return() {}
void __asan_before_dynamic_init(const char *) {}
void __asan_after_dynamic_init() {}

void *__wrap_memcpy(void *destination, const void *source, uint64_t bytes) {
    asim::native_access(source, bytes, false);
    asim::native_access(destination, bytes, true);
    return std::memcpy(destination, source, bytes);
}

void *__wrap_memmove(void *destination, const void *source, uint64_t bytes) {
    asim::native_access(source, bytes, false);
    asim::native_access(destination, bytes, true);
    return std::memmove(destination, source, bytes);
}

void *__wrap_memset(void *destination, int value, uint64_t bytes) {
    asim::native_access(destination, bytes, true);
    return std::memset(destination, value, bytes);
}

int __wrap_memcmp(const void *first, const void *second, uint64_t bytes) {
    asim::native_access(first, bytes, false);
    asim::native_access(second, bytes, false);
    return std::memcmp(first, second, bytes);
}
}
