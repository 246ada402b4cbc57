#include "launch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <string>

#include "asim/asc/launch.h"
#include "asim/machine/fault.h"
#include "asim/machine/gm.h"
#include "asim/machine/process.h"
#include "asim/machine/scheduler.h"
#include "asim/machine/workspace.h"
#include "asim/trace/writer.h"

namespace asim {

namespace {

constexpr uint32_t kMaxBlocks = 65535;  // numBlocks limit (docs/hardware.md section 8)
constexpr int kKinds = 2;

Job g_job;
int g_launches = 0;
CoreKind g_loading = CoreKind::Vector;

// Entries by launch, of each build. Filled while libraries are loaded, so made at its first use.
std::map<std::string, LaunchEntry> &entries(CoreKind kind) {
    static std::map<std::string, LaunchEntry> by_kind[kKinds];
    return by_kind[static_cast<int>(kind)];
}

ProgramMain load_build(CoreKind kind, const std::string &path) {
    g_loading = kind;
    return reinterpret_cast<ProgramMain>(load_kernel_symbol(kind, path, "main"));
}

int create(const std::string &path, int flags) {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
    if (fd < 0) fault(FaultKind::RuntimeFault, "launch", "cannot write %s", path.c_str());
    return fd;
}

// A launch is listed once its trace is complete.
void list_launch(const Launch &launch) {
    const int fd = create(g_job.trace_path + ".launches", O_APPEND);
    dprintf(fd, "%d %llu %s\n", g_launches, static_cast<unsigned long long>(launch.block_dim), launch.kernel);
    close(fd);
}

LaunchEntry entry_of(const Launch &launch, CoreKind kind) {
    const auto found = entries(kind).find(launch.key);
    return found == entries(kind).end() ? nullptr : found->second;
}

void trace_launch(const Launch &launch, const LaunchShape &shape) {
    const LaunchEntry vector = entry_of(launch, CoreKind::Vector);
    const LaunchEntry cube = entry_of(launch, CoreKind::Cube);
    if ((shape.composition.vectors > 0 && vector == nullptr) || (shape.composition.cubes > 0 && cube == nullptr)) {
        fault(FaultKind::RuntimeFault, "launch", "%s needs a kind of core that the program was not built for", launch.kernel);
    }
    const int fd = create(g_job.trace_path + "." + std::to_string(g_launches), O_TRUNC);
    if (g_launches == g_job.located_launch) {
        for (const Location &location : g_job.locations) locate_record(location.block, location.ordinal);
    }
    open_trace(fd, shape.group_count * shape.composition.cores(), shape.composition, g_job.record_limit);
    run_blocks(shape, [&] { (on_cube_core() ? cube : vector)(launch.call, launch.arguments); });
    close_trace();
    close(fd);
}

}  // namespace

bool register_launch(const char *key, LaunchEntry entry) {
    entries(g_loading)[key] = entry;
    return true;
}

ProgramMain load_program(const Job &job) {
    g_job = job;
    add_gm_region("workspace", GmRole::Workspace, kSystemWorkspaceBytes, kOwnAddress);
    const ProgramMain cube = job.cube_kernel_path.empty() ? nullptr : load_build(CoreKind::Cube, job.cube_kernel_path);
    return job.kernel_path.empty() ? cube : load_build(CoreKind::Vector, job.kernel_path);
}

void run_launch(const Launch &launch) {
    if (launch.block_dim == 0 || launch.block_dim > kMaxBlocks) {
        fault(FaultKind::RuntimeFault, "launch", "%s is launched with %llu blocks: expected 1 to %u", launch.kernel,
              static_cast<unsigned long long>(launch.block_dim), kMaxBlocks);
    }
    const KernelMetaType type = launch.type == KERNEL_TYPE_MAX ? g_job.task_type : launch.type;
    trace_launch(launch, shape_of(g_job, type, static_cast<uint32_t>(launch.block_dim)));
    list_launch(launch);
    ++g_launches;
}

}  // namespace asim
