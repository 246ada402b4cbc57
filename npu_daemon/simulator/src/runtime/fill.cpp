#include "asim/semantics/fill.h"

#include <algorithm>
#include <cstring>

#include "asim/check/copy_bounds.h"
#include "asim/machine/call_sync.h"
#include "asim/machine/fault.h"
#include "asim/machine/registers.h"
#include "asim/machine/scalar_memory.h"
#include "asim/semantics/copy.h"
#include "asim/semantics/math.h"

namespace asim {

namespace {

constexpr uint32_t kWordBytes = sizeof(uint32_t);
constexpr uint32_t kLargestBytes = 65504;       // of one copy: 2047 data blocks

// `bytes` bytes of UB become repetitions of the value: a vector instruction where it can be written as words, else scalar stores.
void fill_ub(uint8_t *base, uint32_t bytes, uint64_t value, uint32_t element_bytes) {
    uint8_t pattern[sizeof value];
    for (uint32_t at = 0; at < sizeof pattern; at += element_bytes) std::memcpy(pattern + at, &value, element_bytes);
    uint32_t words[2];
    std::memcpy(words, pattern, sizeof words);
    if (words[0] == words[1]) {
        reset_mask();
        return duplicate<uint32_t>({base}, words[0], Shape::first(bytes / kWordBytes));
    }
    for (uint32_t i = 0; i < bytes / kWordBytes; ++i) store_ub(base + i * kWordBytes, words[i % 2], kWordBytes);
    synchronise(Pipe::S, Pipe::MTE3);
}

}  // namespace

void fill_gm(uint8_t *gm, uint64_t bytes, uint64_t value, uint32_t element_bytes, bool bypass_l2, uint32_t atomic_type) {
    check_element_bytes("Fill", element_bytes);
    if (bytes == 0) return;
    const Scratch free = remaining_scratch();
    const uint64_t padded = std::min<uint64_t>(bytes, kLargestBytes) + kUbBlockBytes - 1;
    const auto buffer_bytes = static_cast<uint32_t>(std::min<uint64_t>(padded, std::min(free.bytes, kLargestBytes)) / kUbBlockBytes * kUbBlockBytes);
    if (buffer_bytes == 0) fault(FaultKind::RuntimeFault, "Fill", "no unified buffer is left to copy the value from");
    synchronise(Pipe::MTE3, Pipe::V);
    fill_ub(free.base, buffer_bytes, value, element_bytes);
    synchronise(Pipe::V, Pipe::MTE3);
    for (uint64_t done = 0; done < bytes; done += buffer_bytes) {
        const auto part = static_cast<uint32_t>(std::min<uint64_t>(buffer_bytes, bytes - done));
        const uint64_t row = (uint64_t{part} + kUbBlockBytes - 1) / kUbBlockBytes * kUbBlockBytes;
        CopyShape shape{1, part, part, row};
        shape.bypass_l2 = bypass_l2;
        copy_ub_to_gm(CopyCall::DataCopyPad, gm + done, free.base, shape, atomic_type);
    }
    synchronise(Pipe::MTE3, Pipe::V);
}

}  // namespace asim
