// Memories of a cube core: what lies where, and what queues take of it.
#include "asim/check/check.h"
#include "asim/machine/kernel_objects.h"
#include "asim/machine/local_memory.h"

namespace asim {

namespace {

constexpr uint32_t kUnits[kSpaceCount] = {32, 1, 32, 512, 512, 64, 64, 64};  // docs/hardware.md section 1

constexpr uint64_t kLargestOffset = 1 << 20;    // within a memory of a core

uint64_t round_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

// A tensor of a TBuf that nothing was handed out for begins at address 0.
void check_handed_out(const char *call, const void *pointer) {
    if (reinterpret_cast<uintptr_t>(pointer) >= kLargestOffset) return;
    fault(FaultKind::RuntimeFault, call, "uses a tensor that has no memory: call TPipe::InitBuffer for its TBuf first");
}

}  // namespace

uint64_t checked_local(const char *call, const char *operand, Space space, const void *pointer, uint64_t bytes,
                       uint32_t unit_bytes) {
    if (static_cast<uint32_t>(space) >= kSpaceCount) {
        fault(FaultKind::RuntimeFault, call, "%s lies in memory %u, which does not exist", operand, static_cast<unsigned>(space));
    }
    const LocalMemory &memory = block().memories[static_cast<int>(space)];
    const int64_t offset = static_cast<const uint8_t *>(pointer) - memory.base;
    if (offset < 0 || bytes > memory.bytes || static_cast<uint64_t>(offset) > memory.bytes - bytes) {
        check_handed_out(call, pointer);
        const Space actual = local_space_of(pointer);
        if (actual != space && actual != Space::Gm) {
            fault(FaultKind::RuntimeFault, call, "%s must lie in %s, and lies in %s: check the tensor's position", operand,
                  memory_name(space), memory_name(actual));
        }
        fault(FaultKind::RuntimeFault, call, "%s touches %s bytes [%lld, %lld), but this core has %u: use a smaller tile", operand,
              memory_name(space), static_cast<long long>(offset), static_cast<long long>(offset + bytes), memory.bytes);
    }
    if (static_cast<uint64_t>(offset) % unit_bytes != 0) {
        fault(FaultKind::RuntimeFault, call, "%s starts at %s byte %lld, which is not a multiple of %u: align the tensor offset",
              operand, memory_name(space), static_cast<long long>(offset), unit_bytes);
    }
    return static_cast<uint64_t>(offset);
}

void fault_outside_ub(const char *call, const void *pointer, uint64_t bytes) {
    check_handed_out(call, pointer);
    const Block &self = block();
    const int64_t offset = static_cast<const uint8_t *>(pointer) - self.ub;
    fault(FaultKind::RuntimeFault, call, "touches unified buffer bytes [%lld, %lld), but this core has %u, of which InitBuffer handed out %llu: %s",
          static_cast<long long>(offset), static_cast<long long>(offset + bytes), self.ub_bytes,
          static_cast<unsigned long long>(self.ub_used_bytes),
          self.ub_used_bytes > self.ub_bytes ? "unified buffer overflow, use a smaller tile or fewer buffers" : "the operand runs past its buffer");
}

void warn_of_overrun(const char *call, uint64_t offset, uint64_t bytes) {
    const uint64_t end = uint64_t{block().buffer_ends[offset / kUbBlockBytes]} * kUbBlockBytes;
    warn(Warning::BufferOverrun, call,
         "touches unified buffer bytes [%llu, %llu), but the buffer that they begin in ends at %llu: the rest belongs to another "
         "one; use a smaller count or a larger buffer",
         static_cast<unsigned long long>(offset), static_cast<unsigned long long>(offset + bytes),
         static_cast<unsigned long long>(end));
}

Space local_space_of(const void *pointer) {
    const Block &self = block();
    const auto *address = static_cast<const uint8_t *>(pointer);
    for (uint32_t i = 0; i < kSpaceCount; ++i) {
        const LocalMemory &memory = self.memories[i];
        if (memory.base != nullptr && address >= memory.base && address < memory.base + memory.bytes) return static_cast<Space>(i);
    }
    const bool in_ub = self.ub != nullptr && address >= self.ub && address < self.ub + self.ub_bytes;
    return in_ub ? Space::Ub : Space::Gm;
}

uint8_t *allocate_local(Space space, uint64_t bytes) {
    LocalMemory &memory = block().memories[static_cast<int>(space)];
    const uint64_t rounded = round_up(bytes, kUnits[static_cast<int>(space)]);
    const uint64_t by_objects = space == Space::L1 && block().objects ? block().objects->l1_bytes() : 0, taken = memory.used_bytes + by_objects;
    if (taken + rounded > memory.bytes) {
        fault(FaultKind::RuntimeFault, "InitBuffer", "%s overflow: %llu bytes asked for, %llu of %u already taken; use a smaller tile or fewer buffers",
              memory_name(space), static_cast<unsigned long long>(rounded), static_cast<unsigned long long>(taken), memory.bytes);
    }
    uint8_t *base = memory.base + memory.used_bytes;
    memory.used_bytes += rounded;
    return base;
}

void reset_local() {
    for (LocalMemory &memory : block().memories) memory.used_bytes = 0;
}

}  // namespace asim
