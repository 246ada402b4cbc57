// A copy takes more than was computed, and may overwrite what the next block has written.
#include "probe.h"

namespace garbage_beside_share {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    for (uint32_t offset = 0; offset < SHARE; offset += TILE) {
        const bool rounded = !ordered && offset > 0 && probe.block + 1 < BLOCKS;
        PlainTile(probe, offset, rounded ? TILE + 8 : TILE);
    }
}
} // namespace garbage_beside_share
