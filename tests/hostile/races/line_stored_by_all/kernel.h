// All cores store to one line, each a value of its own: lines are written back whole.
#include "probe.h"

namespace line_stored_by_all {
template <bool ordered>
__aicore__ inline void Run(Probe& probe)
{
    probe.InitBuffers();
    PlainShare(probe);

    __gm__ int32_t* shared = (__gm__ int32_t*)probe.scratch.GetPhyAddr();
    const int32_t value = probe.block;
    if (ordered) {
        WriteGmByPassDCache(shared + probe.block, value);
    } else {
        shared[probe.block] = value;
    }
}
} // namespace line_stored_by_all
