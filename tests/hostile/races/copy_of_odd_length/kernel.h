// A copy whose length is no multiple of 32 bytes leaves its last elements out.
#include "probe.h"

namespace copy_of_odd_length {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        PlainTile(probe, offset, ordered ? TILE : TILE - 4);
    }
}
} // namespace copy_of_odd_length
