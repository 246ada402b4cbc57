#include "asim/machine/tiling_data.h"

#include <algorithm>
#include <cstring>

#include "asim/machine/block.h"
#include "asim/machine/kernel_memory.h"
#include "asim/machine/scalar_access.h"

namespace asim {

namespace {

constexpr uint32_t kWordBytes = 8;

}  // namespace

void copy_tiling_bytes(void *destination, const uint8_t *source, uint32_t bytes) {
    auto *out = static_cast<uint8_t *>(destination);
    kernel_access(destination, bytes, true);
    for (uint32_t offset = 0; offset < bytes; offset += kWordBytes) {
        const uint32_t word = std::min(kWordBytes, bytes - offset);
        std::memcpy(out + offset, scalar_gm("GET_TILING_DATA", const_cast<uint8_t *>(source) + offset, word, false), word);
    }
}

bool tiling_key_is(uint64_t key) {
    Block &self = block();
    self.tiling_key_asked = true;
    self.tiling_key_matched |= key == g_tiling_key;
    return key == g_tiling_key;
}

}  // namespace asim
