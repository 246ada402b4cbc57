// Global memory: the tensors, workspace and tiling data that a kernel may touch.
#pragma once
#include <cstddef>
#include <cstdint>

namespace asim {

enum class GmRole : uint8_t { Input, Output, InOut, Workspace, Tiling, List, Constant, Static };

// A tensor in GM. An allocation on the device is larger than what was asked for,
// and copies of tails rounded up to whole blocks touch that slack. It belongs to no other tensor and to no output: it
// is poison at launch and keeps what the kernel writes there. Only what goes beyond is out of bounds.
struct GmRegion {
    uint8_t *base;
    uint64_t size_bytes;
    uint64_t slack_bytes;
    uint64_t canonical_base;    // address in the trace: the same on every host
    GmRole role;
    char name[48];
    uint64_t *written;          // a bit for each byte that copies have written; null before the first, and of inputs
};

constexpr uint64_t kOwnAddress = 0;         // let the region take the next address above all tensors

GmRegion &add_gm_region(const char *name, GmRole role, uint64_t size_bytes, uint64_t canonical_base);
// Where regions of no address of their own begin. Several copies of the runtime in one process must keep apart.
void begin_own_addresses(uint64_t first);
// Gives back the region that starts at `base`; false when there is none. Its addresses are not used again.
bool remove_gm_region(const void *base);
// Lets copies and GetValue read `bytes` at `base`: arrays of the kernel itself, which lie in GM on the device.
void add_gm_constants(const void *base, uint64_t bytes);
// Lets kernels read and write [begin, end), the static arrays of a library that they keep in global memory: whole pages.
void add_gm_arrays(uint8_t *begin, const uint8_t *end);
const GmRegion *find_gm_region(const void *pointer);
size_t gm_region_count();
const GmRegion &gm_region(size_t index);

// How many bytes from the first on, and from the last on, hold a value.
struct Held {
    uint64_t leading = 0;
    uint64_t trailing = 0;
};

// What of `bytes` at `base` holds a value before they are written, as they now are. Outputs and workspace hold none at
// launch, all other memory does.
Held note_written(const uint8_t *base, uint64_t bytes);

// Canonical address of a range, after checking that it lies inside one region and may be accessed so.
uint64_t checked_gm(const char *call, const void *pointer, uint64_t bytes, bool write);

}  // namespace asim
