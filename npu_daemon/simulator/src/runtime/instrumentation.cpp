#include "asim/machine/instrumentation.h"

#include <algorithm>
#include <cstring>

#include "asim/machine/block.h"
#include "asim/machine/fault.h"
#include "asim/machine/kernel_memory.h"
#include "asim/machine/reached.h"

namespace asim {

namespace {

constexpr uint64_t kWordBytes = 8;

// One access of at most a word of the stack is the usual case.
inline void access(void *address, uint64_t bytes, bool write) {
    const auto offset = static_cast<uint64_t>(static_cast<uint8_t *>(address) - block().stack);
    if (__builtin_expect(bytes > kWordBytes || offset > kDataStackBytes - kWordBytes, 0)) return kernel_access(address, bytes, write);
    count_scalar(ScalarClass::StackAccess, 1);
}

}  // namespace

}  // namespace asim

extern "C" {

void *asim_load(void *address, uint64_t bytes) {
    asim::access(address, bytes, false);
    return address;
}

void *asim_store(void *address, uint64_t bytes) {
    asim::access(address, bytes, true);
    return address;
}

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

// Work on addresses alone, of the classes Integer and Multiply, needs no loaded value. Counts have a byte each, in their order.
static_assert(asim::ScalarClass::Integer < asim::ScalarClass::Multiply && asim::ScalarClass::Multiply < asim::ScalarClass::Divide);
constexpr uint32_t kBitsOfAddresses = 8 * static_cast<uint32_t>(asim::ScalarClass::Divide);

// The library lies at whole pages, so that which places share a bit does not depend on where that is.
void asim_count(uint64_t packed) {
    const uint64_t place = reinterpret_cast<uint64_t>(__builtin_return_address(0)) / asim::kCodePlaceBytes % asim::kCodePlaces;
    uint64_t &places = asim::block().executed[place / 64];
    const uint64_t bit = uint64_t{1} << place % 64;
    if (__builtin_expect((places & bit) == 0, 0)) {
        places |= bit;
        for (uint64_t left = packed; left != 0; left >>= 8) asim::count_scalar(asim::ScalarClass::Fetched, left & 0xff);
    }
    if (packed >> kBitsOfAddresses != 0) asim::block().after_load = false;
    using Bytes = uint8_t __attribute__((vector_size(asim::kCountedClassCount)));
    using Words = uint64_t __attribute__((vector_size(asim::kCountedClassCount * sizeof(uint64_t)), aligned(sizeof(uint64_t)), may_alias));
    Bytes counts;
    std::memcpy(&counts, &packed, sizeof counts);
    *reinterpret_cast<Words *>(asim::block().scalar_counts) += __builtin_convertvector(counts, Words);
}

void asim_reached(uint32_t number) { asim::note_reached(number); }

const void *asim_call(const void *target, const void *const *targets, uint64_t count) {
    if (std::find(targets, targets + count, target) != targets + count) return target;
    asim::fault(asim::FaultKind::RuntimeFault, "call through a pointer",
                "the pointer is none to a function of the kernel that takes and returns what the call does");
}

uint64_t asim_value(uint64_t value) { return value; }

uint64_t asim_divide(uint64_t dividend, uint64_t divisor, uint64_t how) {
    const uint32_t unused = 64 - (how & 0xff);      // registers hold anything above the operands
    const bool remainder = (how & 0x200) != 0;
    if (divisor << unused == 0) return remainder ? dividend : 0;
    if ((how & 0x100) == 0) {
        const uint64_t a = dividend << unused >> unused, b = divisor << unused >> unused;
        return remainder ? a % b : a / b;
    }
    const int64_t a = static_cast<int64_t>(dividend << unused) >> unused, b = static_cast<int64_t>(divisor << unused) >> unused;
    if (b == -1) return remainder ? 0 : -static_cast<uint64_t>(a);
    return static_cast<uint64_t>(remainder ? a % b : a / b);
}

void asim_unreachable() {
    asim::fault(asim::FaultKind::RuntimeFault, "unreachable code",
                "the kernel came to a place that it says cannot be reached: a function that ends without returning a value, or "
                "__builtin_unreachable");
}
}
