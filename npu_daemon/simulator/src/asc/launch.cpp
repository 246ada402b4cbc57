#include "launch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "asim/asc/launch.h"
#include "asim/machine/fault.h"
#include "asim/machine/scheduler.h"
#include "asim/trace/writer.h"

namespace asim {

namespace {

constexpr uint32_t kMaxBlocks = 65535;  // numBlocks limit (facts/npu_2201.md section 8)

Job g_job;
int g_launches = 0;

int create(const std::string &path, int flags) {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
    if (fd < 0) fault(FaultKind::RuntimeFault, "launch", "cannot write %s", path.c_str());
    return fd;
}

// A launch is listed once its trace is complete.
void list_launch(const char *kernel, uint32_t block_dim) {
    const int fd = create(g_job.trace_path + ".launches", O_APPEND);
    dprintf(fd, "%d %u %s\n", g_launches, block_dim, kernel);
    close(fd);
}

}  // namespace

void prepare_launches(const Job &job) { g_job = job; }

void run_launch(const char *kernel, uint32_t block_dim, const std::function<void()> &entry) {
    if (block_dim == 0 || block_dim > kMaxBlocks) {
        fault(FaultKind::RuntimeFault, "launch", "%s is launched with %u blocks: expected 1 to %u", kernel, block_dim, kMaxBlocks);
    }
    const int fd = create(g_job.trace_path + "." + std::to_string(g_launches), O_TRUNC);
    const LaunchShape shape = shape_of(g_job, g_job.task_type, block_dim);
    open_trace(fd, shape.group_count * shape.composition.cores(), shape.composition, g_job.record_limit);
    run_blocks(shape, entry);
    close_trace();
    close(fd);
    list_launch(kernel, block_dim);
    ++g_launches;
}

}  // namespace asim
