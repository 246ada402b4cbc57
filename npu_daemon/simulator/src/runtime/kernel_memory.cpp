#include "asim/machine/kernel_memory.h"

#include <algorithm>

#include "asim/check/check.h"
#include "asim/machine/block.h"
#include "asim/machine/gm.h"
#include "asim/machine/local_memory.h"
#include "asim/machine/scalar_access.h"

namespace asim {

namespace {

constexpr uint64_t kWordBytes = 8;
constexpr uint64_t kNullBytes = 4096;           // addresses below are offsets from a null pointer
constexpr uint64_t kStackGuardBytes = 4u << 20; // below the stack nothing lies

bool g_host_memory = false;

uint64_t words_of(uint64_t bytes) { return (bytes + kWordBytes - 1) / kWordBytes; }

const char *name_of(bool write) { return write ? "store through a raw pointer" : "load through a raw pointer"; }

using WordAccess = void *(*)(const char *, void *, uint32_t, bool);

void access_words(uint8_t *address, uint64_t bytes, bool write, WordAccess access) {
    for (uint64_t offset = 0; offset < bytes; offset += kWordBytes) {
        access(name_of(write), address + offset, static_cast<uint32_t>(std::min(kWordBytes, bytes - offset)), write);
    }
}

bool inside(const uint8_t *address, uint64_t bytes, const uint8_t *base, uint64_t size) {
    const auto offset = static_cast<uint64_t>(address - base);
    return offset <= size && bytes <= size - offset;
}

bool starts_inside(const uint8_t *address, const uint8_t *base, uint64_t size) {
    return base != nullptr && static_cast<uint64_t>(address - base) < size;
}

[[noreturn]] void fault_outside(const uint8_t *address, uint64_t bytes, bool write) {
    const uint8_t *const stack = block().stack;
    if (starts_inside(address, stack, kDataStackBytes)) {
        fault(FaultKind::RuntimeFault, name_of(write),
              "runs past the end of the stack, which has %u bytes: an array has fewer elements than are used", kDataStackBytes);
    }
    if (address < stack && static_cast<uint64_t>(stack - address) <= kStackGuardBytes) {
        fault(FaultKind::RuntimeFault, name_of(write),
              "the stack is full: the variables of all functions under way take more than its %u bytes", kDataStackBytes);
    }
    if (reinterpret_cast<uint64_t>(address) < kNullBytes) {
        fault(FaultKind::RuntimeFault, name_of(write), "%llu bytes through a null pointer", static_cast<unsigned long long>(bytes));
    }
    fault(FaultKind::RuntimeFault, name_of(write),
          "%llu bytes outside all memory of the kernel: expected its own variables and constants, the unified buffer or a tensor in "
          "global memory", static_cast<unsigned long long>(bytes));
}

// Tables of the code are cached like the stack.
void access_constants(const uint8_t *address, uint64_t bytes, bool write) {
    checked_gm(name_of(write), address, bytes, write);
    count_scalar(ScalarClass::StackAccess, words_of(bytes));
}

// All but the stack.
void access_memory(uint8_t *address, uint64_t bytes, bool write) {
    if (bytes == 0) return;
    const Block &self = block();
    if (starts_inside(address, self.ub, self.ub_bytes)) return access_words(address, bytes, write, native_ub);
    const Space space = local_space_of(address);
    if (space != Space::Gm) {
        fault(FaultKind::RuntimeFault, name_of(write), "the scalar unit does not reach %s: move the data with instructions",
              memory_name(space));
    }
    const GmRegion *region = find_gm_region(address);
    if (region != nullptr && region->role == GmRole::Constant) return access_constants(address, bytes, write);
    if (region != nullptr) return access_words(address, bytes, write, native_gm);
    if (!g_host_memory) fault_outside(address, bytes, write);
}

}  // namespace

void allow_host_memory(bool allowed) { g_host_memory = allowed; }

void kernel_access(const void *address, uint64_t bytes, bool write) {
    auto *pointer = static_cast<uint8_t *>(const_cast<void *>(address));
    if (!inside(pointer, bytes, block().stack, kDataStackBytes)) return access_memory(pointer, bytes, write);
    count_scalar(ScalarClass::StackAccess, words_of(bytes));
}

namespace {

// From an address to the end of the memory that it lies in and that kernels may read; 0 outside of it.
uint64_t readable_bytes(const uint8_t *address) {
    const auto until = [address](const uint8_t *base, uint64_t size) { return static_cast<uint64_t>(base + size - address); };
    const Block &self = block();
    if (starts_inside(address, self.stack, kDataStackBytes)) return until(self.stack, kDataStackBytes);
    if (starts_inside(address, self.ub, self.ub_bytes)) return until(self.ub, self.ub_bytes);
    const GmRegion *region = find_gm_region(address);
    if (region != nullptr) return until(region->base, region->size_bytes + region->slack_bytes);
    return g_host_memory && reinterpret_cast<uint64_t>(address) >= kNullBytes ? ~0ull : 0;
}

bool prints(char character) { return character >= ' ' && character <= '~'; }

}  // namespace

std::string kernel_text(const char *text, uint64_t most) {
    const uint64_t bytes = std::min(most, readable_bytes(reinterpret_cast<const uint8_t *>(text)));
    std::string copy(text, std::find(text, text + bytes, '\0'));
    for (char &character : copy) {
        if (character != '\n' && !prints(character)) character = '?';
    }
    return copy;
}

}  // namespace asim
