#include "asim/machine/gm.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "asim/machine/fault.h"
#include "asim/machine/rerun.h"
#include "asim/numeric/bit_range.h"

namespace asim {

namespace {

constexpr uint64_t kCanonicalAlignment = 2ull << 20;  // as huge-page allocations on the device
constexpr uint64_t kHugePageBytes = 2ull << 20;       // of the host
// Where regions are mapped: the same addresses in every process of the same rerun, also beside the shadow of AddressSanitizer.
constexpr uint64_t kMemoryBase = 17ull << 40;
constexpr uint64_t kFirstOwnAddress = 1ull << 43;     // workspace, tiling data and list descriptors
// What an allocation holds: 32 B more than asked for (aclrtMalloc), rounded up to 512 B (the caching allocator of
// torch_npu; pages of 4 KiB and 2 MiB, which aclrtMalloc hands out, are multiples of it).
constexpr uint64_t kAllocationExtra = 32;
constexpr uint64_t kAllocationUnit = 512;
constexpr uint64_t kMostBytes = 1ull << 46;     // of an allocation: more than any device has, and no sum wraps around

std::vector<GmRegion> g_regions;
uint64_t g_next_own_address = kFirstOwnAddress;

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

uint64_t page_bytes() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

// What is mapped for a region: its pages between two guard pages.
uint64_t mapped_bytes(const GmRegion &region) {
    return round_up(region.size_bytes + region.slack_bytes, page_bytes()) + 2 * page_bytes();
}

bool read_only(GmRole role) {
    return role == GmRole::Input || role == GmRole::Tiling || role == GmRole::List || role == GmRole::Constant;
}

// Keeps the regions in the order of their addresses; returns the one added.
GmRegion &insert(const GmRegion &region) {
    if (region.canonical_base == g_next_own_address) {
        g_next_own_address += round_up(mapped_bytes(region), kCanonicalAlignment);
    }
    const auto next = std::upper_bound(g_regions.begin(), g_regions.end(), region,
                                       [](const GmRegion &a, const GmRegion &b) { return a.base < b.base; });
    return *g_regions.insert(next, region);
}

// A region that the loader has mapped already.
GmRegion part_of_library(const char *name, GmRole role, void *base, uint64_t bytes) {
    GmRegion region{};
    region.base = static_cast<uint8_t *>(base);
    region.size_bytes = bytes;
    region.canonical_base = g_next_own_address;
    region.role = role;
    snprintf(region.name, sizeof region.name, "%s", name);
    return region;
}

// Fewer faults; may be refused.
void use_huge_pages(void *memory, uint64_t bytes) {
    if (bytes >= kHugePageBytes) madvise(memory, bytes, MADV_HUGEPAGE);
}

// Large ones have whole huge pages, since only these are aligned to them.
uint64_t bitmap_bytes(const GmRegion &region) {
    const uint64_t bytes = (region.size_bytes + region.slack_bytes) / 8 + sizeof(uint64_t);
    return round_up(bytes, bytes >= kHugePageBytes / 2 ? kHugePageBytes : page_bytes());
}

// Zero until written, and of no cost until then.
uint64_t *new_bitmap(const GmRegion &region) {
    void *mapped = mmap(nullptr, bitmap_bytes(region), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) fault(FaultKind::RuntimeFault, "launch", "cannot keep track of what is written to %s", region.name);
    use_huge_pages(mapped, bitmap_bytes(region));
    return static_cast<uint64_t *>(mapped);
}

bool inside(const GmRegion &region, const uint8_t *address) {
    return address >= region.base && address < region.base + region.size_bytes + region.slack_bytes;
}

GmRegion *region_of(const uint8_t *address) {
    auto next = std::upper_bound(g_regions.begin(), g_regions.end(), address,
                                 [](const uint8_t *a, const GmRegion &region) { return a < region.base; });
    if (next == g_regions.begin()) return nullptr;
    --next;
    return inside(*next, address) ? &*next : nullptr;
}

}  // namespace

GmRegion &add_gm_region(const char *name, GmRole role, uint64_t size_bytes, uint64_t canonical_base) {
    const uint64_t page = page_bytes();
    const auto fail = [&] {
        fault(FaultKind::RuntimeFault, "workspace", "cannot allocate %llu bytes of global memory for %s",
              static_cast<unsigned long long>(size_bytes), name);
    };
    if (size_bytes > kMostBytes) fail();
    GmRegion region{};
    region.size_bytes = size_bytes;
    region.slack_bytes = round_up(size_bytes + kAllocationExtra, kAllocationUnit) - size_bytes;
    region.canonical_base = canonical_base == kOwnAddress ? g_next_own_address : canonical_base;
    region.role = role;
    snprintf(region.name, sizeof region.name, "%s", name);
    const uint64_t usable = mapped_bytes(region) - 2 * page;
    auto *wanted = reinterpret_cast<uint8_t *>(kMemoryBase + rerun().shift_bytes + region.canonical_base - page);
    void *mapped = mmap(wanted, mapped_bytes(region), PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (mapped == MAP_FAILED || mprotect(static_cast<uint8_t *>(mapped) + page, usable, PROT_READ | PROT_WRITE) != 0) fail();
    region.base = static_cast<uint8_t *>(mapped) + page;
    use_huge_pages(region.base, usable);
    return insert(region);
}

void begin_own_addresses(uint64_t first) { g_next_own_address = first; }

bool remove_gm_region(const void *base) {
    const auto found = std::find_if(g_regions.begin(), g_regions.end(), [=](const GmRegion &region) {
        return region.base == base && region.role != GmRole::Constant && region.role != GmRole::Static;
    });
    if (found == g_regions.end()) return false;
    if (found->written != nullptr) munmap(found->written, bitmap_bytes(*found));
    munmap(found->base - page_bytes(), mapped_bytes(*found));
    g_regions.erase(found);
    return true;
}

void add_gm_constants(const void *base, uint64_t bytes) {
    insert(part_of_library("constants of the kernel", GmRole::Constant, const_cast<void *>(base), bytes));
}

void add_gm_arrays(uint8_t *begin, const uint8_t *end) {
    if (begin == end) return;
    const auto bytes = static_cast<uint64_t>(end - begin);
    // What else lies in the last page belongs to no region: no access of a kernel reaches it.
    if (mprotect(begin, round_up(bytes, page_bytes()), PROT_READ | PROT_WRITE) != 0) {
        fault(FaultKind::RuntimeFault, "launch", "cannot make the static arrays in global memory writable");
    }
    insert(part_of_library("static arrays of the kernel", GmRole::Static, begin, bytes));
}

const GmRegion *find_gm_region(const void *pointer) { return region_of(static_cast<const uint8_t *>(pointer)); }

Held note_written(const uint8_t *base, uint64_t bytes) {
    GmRegion *region = region_of(base);
    if (bytes == 0 || region == nullptr || (region->role != GmRole::Output && region->role != GmRole::Workspace)) return {bytes, bytes};
    if (region->written == nullptr) region->written = new_bitmap(*region);
    const uint64_t begin = base - region->base, end = begin + bytes;
    const Held held{leading_ones(region->written, begin, end), trailing_ones(region->written, begin, end)};
    if (held.leading < bytes) set_bits(region->written, begin, end);
    return held;
}

size_t gm_region_count() { return g_regions.size(); }
const GmRegion &gm_region(size_t index) { return g_regions[index]; }

uint64_t checked_gm(const char *call, const void *pointer, uint64_t bytes, bool write) {
    const auto *address = static_cast<const uint8_t *>(pointer);
    const char *verb = write ? "writes" : "reads";
    const GmRegion *region = find_gm_region(pointer);
    if (region == nullptr) {
        fault(FaultKind::RuntimeFault, call, "%s %llu bytes at a global address that belongs to no tensor", verb,
              static_cast<unsigned long long>(bytes));
    }
    const uint64_t offset = address - region->base;
    const uint64_t size = region->size_bytes + region->slack_bytes;
    if (bytes > size || offset > size - bytes) {
        fault(FaultKind::RuntimeFault, call, "%s bytes [%llu, %llu) of %s, which has %llu bytes: out of bounds", verb,
              static_cast<unsigned long long>(offset), static_cast<unsigned long long>(offset + bytes), region->name,
              static_cast<unsigned long long>(region->size_bytes));
    }
    if (write && read_only(region->role)) {
        fault(FaultKind::RuntimeFault, call, "writes to %s, which is read-only for a kernel", region->name);
    }
    const bool tensor = region->role == GmRole::Input || region->role == GmRole::Output || region->role == GmRole::InOut;
    if (__builtin_expect(tensor && bytes > 0 && offset + bytes > region->size_bytes, 0)) {
        warn(write ? Warning::WriteBehind : Warning::ReadBehind, call,
             "%s %llu bytes behind the end of %s, which has %llu bytes: allowed up to 32 bytes, which each allocation has to spare",
             verb, static_cast<unsigned long long>(offset + bytes - region->size_bytes), region->name,
             static_cast<unsigned long long>(region->size_bytes));
    }
    return region->canonical_base + offset;
}

}  // namespace asim
