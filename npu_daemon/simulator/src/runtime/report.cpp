#include "asim/machine/report.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "asim/machine/block.h"

namespace asim {

namespace {

const void *g_image_bases[kCoreKinds] = {};

}  // namespace

void set_kernel_image(CoreKind kind, const void *address_in_image) {
    Dl_info info;
    if (dladdr(address_in_image, &info) != 0) {
        g_image_bases[static_cast<int>(kind)] = info.dli_fbase;
    }
}

static void write_line(int fd, const char *kind, const char *call, const char *message, void *const *frames, int frame_count) {
    const bool cube = g_block != nullptr && on_cube_core();
    const void *image_base = g_image_bases[cube ? 1 : 0];
    char offsets[512] = "";
    size_t used = 0;
    for (int i = 0; i < frame_count && used + 24 < sizeof offsets; ++i) {
        Dl_info info;
        if (dladdr(frames[i], &info) != 0 && info.dli_fbase == image_base) {
            const auto offset = reinterpret_cast<uintptr_t>(frames[i]) - reinterpret_cast<uintptr_t>(image_base);
            // A frame holds the return address; the call is just before it.
            used += snprintf(offsets + used, sizeof offsets - used, "%s%llx", used ? "," : "",
                             static_cast<unsigned long long>(offset - 1));
        }
    }
    char line[2048];
    const int block_index = g_block ? static_cast<int>(g_block->index) : -1;
    const int length = snprintf(line, sizeof line, "%s\t%s\t%s%d\t%s\t%s\n", kind, call, cube ? "cube " : "", block_index,
                                offsets, message);
    const ssize_t written = write(fd, line, static_cast<size_t>(length) < sizeof line ? length : sizeof line - 1);
    (void)written;
}

void write_report(const char *kind, const char *call, const char *message, void *const *frames, int frame_count) {
    write_line(STDOUT_FILENO, kind, call, message, frames, frame_count);
}

void write_warning(const char *kind, const char *call, const char *message, void *const *frames, int frame_count) {
    write_line(STDERR_FILENO, kind, call, message, frames, frame_count);
}

}  // namespace asim
