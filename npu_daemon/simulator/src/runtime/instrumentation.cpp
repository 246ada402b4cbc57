#include "asim/machine/instrumentation.h"

#include <algorithm>
#include <cstring>

#include "asim/check/check.h"
#include "asim/machine/block.h"
#include "asim/machine/gm.h"
#include "asim/machine/kernel_memory.h"
#include "asim/machine/local_memory.h"
#include "asim/machine/scalar_access.h"

namespace asim {

namespace {

constexpr uint64_t kWordBytes = 8;

// One access of at most a word of the stack is the usual case.
inline void access(void *address, uint64_t bytes, bool write) {
    const auto offset = static_cast<uint64_t>(static_cast<uint8_t *>(address) - block().stack);
    if (__builtin_expect(bytes > kWordBytes || offset > kDataStackBytes - kWordBytes, 0)) return kernel_access(address, bytes, write);
    count_scalar(ScalarClass::StackAccess, 1);
}

void access_words(uint8_t *address, uint64_t bytes, bool write, void *(*access)(const char *, void *, uint32_t, bool)) {
    const char *call = write ? "store through a raw pointer" : "load through a raw pointer";
    for (uint64_t offset = 0; offset < bytes; offset += kWordBytes) {
        access(call, address + offset, static_cast<uint32_t>(std::min(kWordBytes, bytes - offset)), write);
    }
}

// Of kernels that g++ has compiled, which has its own words for all this: stack and constants cost nothing there.
void access_by_sanitizer(const void *address, uint64_t bytes, bool write) {
    auto *pointer = static_cast<uint8_t *>(const_cast<void *>(address));
    const bool in_ub = block().ub != nullptr && pointer >= block().ub && pointer < block().ub + block().ub_bytes;
    if (in_ub) return access_words(pointer, bytes, write, native_ub);
    if (local_space_of(address) != Space::Gm) return kernel_access(pointer, bytes, write);
    const GmRegion *region = find_gm_region(address);
    if (region != nullptr && region->role != GmRole::Constant) access_words(pointer, bytes, write, native_gm);
}

}  // namespace

}  // namespace asim

extern "C" {

void asim_load(const void *address, uint64_t bytes) { asim::access(const_cast<void *>(address), bytes, false); }

void asim_store(void *address, uint64_t bytes) { asim::access(address, bytes, true); }

void asim_memcpy(void *destination, const void *source, uint64_t bytes) { asim_memmove(destination, source, bytes); }

void asim_memmove(void *destination, const void *source, uint64_t bytes) {
    asim::kernel_access(source, bytes, false);
    asim::kernel_access(destination, bytes, true);
    std::memmove(destination, source, bytes);
}

void asim_memset(void *destination, int value, uint64_t bytes) {
    asim::kernel_access(destination, bytes, true);
    std::memset(destination, value, bytes);
}

int asim_memcmp(const void *first, const void *second, uint64_t bytes) {
    asim::kernel_access(first, bytes, false);
    asim::kernel_access(second, bytes, false);
    return std::memcmp(first, second, bytes);
}

void asim_count(uint64_t packed) {
    using Bytes = uint8_t __attribute__((vector_size(asim::kCountedClassCount)));
    using Words = uint64_t __attribute__((vector_size(asim::kCountedClassCount * sizeof(uint64_t)), aligned(sizeof(uint64_t)), may_alias));
    Bytes counts;
    std::memcpy(&counts, &packed, sizeof counts);
    *reinterpret_cast<Words *>(asim::block().scalar_counts) += __builtin_convertvector(counts, Words);
}

void asim_call(const void *target, const void *const *targets, uint64_t count) {
    if (std::find(targets, targets + count, target) != targets + count) return;
    asim::fault(asim::FaultKind::RuntimeFault, "call through a pointer",
                "the pointer is none to a function of the kernel that takes and returns what the call does");
}

void asim_unreachable() {
    asim::fault(asim::FaultKind::RuntimeFault, "unreachable code",
                "the kernel came to a place that it says cannot be reached: a function that ends without returning a value, or "
                "__builtin_unreachable");
}

#pragma GCC visibility push(default)

// The words of g++ (-fsanitize-coverage=trace-pc and -fsanitize=kernel-address in its outlined form), and the memory functions
// that its libraries are linked to.
void __sanitizer_cov_trace_pc() { asim::count_scalar(asim::ScalarClass::Block, 1); }

void __asan_load1_noabort(const void *address) { asim::access_by_sanitizer(address, 1, false); }
void __asan_load2_noabort(const void *address) { asim::access_by_sanitizer(address, 2, false); }
void __asan_load4_noabort(const void *address) { asim::access_by_sanitizer(address, 4, false); }
void __asan_load8_noabort(const void *address) { asim::access_by_sanitizer(address, 8, false); }
void __asan_load16_noabort(const void *address) { asim::access_by_sanitizer(address, 16, false); }
void __asan_loadN_noabort(const void *address, uint64_t bytes) { asim::access_by_sanitizer(address, bytes, false); }
void __asan_store1_noabort(const void *address) { asim::access_by_sanitizer(address, 1, true); }
void __asan_store2_noabort(const void *address) { asim::access_by_sanitizer(address, 2, true); }
void __asan_store4_noabort(const void *address) { asim::access_by_sanitizer(address, 4, true); }
void __asan_store8_noabort(const void *address) { asim::access_by_sanitizer(address, 8, true); }
void __asan_store16_noabort(const void *address) { asim::access_by_sanitizer(address, 16, true); }
void __asan_storeN_noabort(const void *address, uint64_t bytes) { asim::access_by_sanitizer(address, bytes, true); }
void __asan_handle_no_return() {}
void __asan_before_dynamic_init(const char *) {}
void __asan_after_dynamic_init() {}

void *__wrap_memcpy(void *destination, const void *source, uint64_t bytes) {
    asim::access_by_sanitizer(source, bytes, false);
    asim::access_by_sanitizer(destination, bytes, true);
    return std::memcpy(destination, source, bytes);
}

void *__wrap_memmove(void *destination, const void *source, uint64_t bytes) {
    asim::access_by_sanitizer(source, bytes, false);
    asim::access_by_sanitizer(destination, bytes, true);
    return std::memmove(destination, source, bytes);
}

void *__wrap_memset(void *destination, int value, uint64_t bytes) {
    asim::access_by_sanitizer(destination, bytes, true);
    return std::memset(destination, value, bytes);
}

int __wrap_memcmp(const void *first, const void *second, uint64_t bytes) {
    asim::access_by_sanitizer(first, bytes, false);
    asim::access_by_sanitizer(second, bytes, false);
    return std::memcmp(first, second, bytes);
}

#pragma GCC visibility pop
}
