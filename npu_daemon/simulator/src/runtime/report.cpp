#include "asim/machine/report.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "asim/machine/block.h"

namespace asim {

namespace {

const void *g_image_base = nullptr;

}  // namespace

void set_kernel_image(const void *address_in_image) {
    Dl_info info;
    if (dladdr(address_in_image, &info) != 0) {
        g_image_base = info.dli_fbase;
    }
}

void write_report(const char *kind, const char *call, const char *message, void *const *frames, int frame_count) {
    char offsets[512] = "";
    size_t used = 0;
    for (int i = 0; i < frame_count && used + 24 < sizeof offsets; ++i) {
        Dl_info info;
        if (dladdr(frames[i], &info) != 0 && info.dli_fbase == g_image_base) {
            const auto offset = reinterpret_cast<uintptr_t>(frames[i]) - reinterpret_cast<uintptr_t>(g_image_base);
            // A frame holds the return address; the call is just before it.
            used += snprintf(offsets + used, sizeof offsets - used, "%s%llx", used ? "," : "",
                             static_cast<unsigned long long>(offset - 1));
        }
    }
    char line[2048];
    const int block_index = g_block ? static_cast<int>(g_block->index) : -1;
    const int length = snprintf(line, sizeof line, "%s\t%s\t%d\t%s\t%s\n", kind, call, block_index, offsets, message);
    const ssize_t written = write(STDOUT_FILENO, line, static_cast<size_t>(length) < sizeof line ? length : sizeof line - 1);
    (void)written;
}

}  // namespace asim
