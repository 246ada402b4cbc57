#include "asim/machine/scalar_memory.h"

#include <cstring>

#include "asim/machine/fault.h"
#include "asim/machine/scalar_access.h"

namespace asim {

namespace {

void check_size(const char *call, uint32_t bytes) {
    if (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) return;
    fault(FaultKind::RuntimeFault, call, "an element has 1, 2, 4 or 8 bytes, not %u", bytes);
}

using Access = void *(*)(const char *, void *, uint32_t, bool);

uint64_t load(const char *call, Access access, const void *element, uint32_t bytes) {
    check_size(call, bytes);
    uint64_t bits = 0;
    std::memcpy(&bits, access(call, const_cast<void *>(element), bytes, false), bytes);
    return bits;
}

void store(const char *call, Access access, void *element, uint64_t bits, uint32_t bytes) {
    check_size(call, bytes);
    std::memcpy(access(call, element, bytes, true), &bits, bytes);
}

}  // namespace

uint64_t load_ub(const void *element, uint32_t bytes) { return load("GetValue", scalar_ub, element, bytes); }
void store_ub(void *element, uint64_t bits, uint32_t bytes) { store("SetValue", scalar_ub, element, bits, bytes); }
uint64_t load_gm(const void *element, uint32_t bytes) { return load("GetValue(GM)", scalar_gm, element, bytes); }

void store_gm(void *element, uint64_t bits, uint32_t bytes) {
    constexpr const char *kCall = "SetValue(GM)";
    check_size(kCall, bytes);
    std::memcpy(scalar_gm_store(kCall, element, &bits, bytes), &bits, bytes);
}

uint64_t load_uncached(const void *element, uint32_t bytes) { return load("ReadGmByPassDCache", uncached_gm, element, bytes); }
void store_uncached(void *element, uint64_t bits, uint32_t bytes) { store("WriteGmByPassDCache", uncached_gm, element, bits, bytes); }

}  // namespace asim
