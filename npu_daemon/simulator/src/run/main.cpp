// Executes one launch of a kernel library on files of inputs, and writes outputs and trace.
// Untrusted: candidate code runs in this process. Exit status 0 = ran, 3 = fault reported on standard output.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>

#include "asim/machine/block.h"
#include "asim/machine/data_stack.h"
#include "asim/machine/fault.h"
#include "asim/machine/gm.h"
#include "asim/machine/list_block.h"
#include "asim/machine/process.h"
#include "asim/machine/reached.h"
#include "asim/machine/rerun.h"
#include "asim/trace/writer.h"
#include "job.h"

namespace asim {

namespace {

using KernelEntry = void (*)(uint8_t *const *, uint32_t);
using TaskTypeQuery = uint32_t (*)(uint64_t key, uint32_t otherwise);

// A kernel library as it is loaded; both null when the kernel was not built for the kind of core.
struct LoadedKernel {
    KernelEntry entry = nullptr;
    TaskTypeQuery task_type = nullptr;
};

constexpr int kUsageExit = 2;

struct Written {
    const uint8_t *base;
    const TensorFile *tensor;
};

void read_file(const std::string &path, uint8_t *destination, uint64_t bytes) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    uint64_t done = 0;
    while (fd >= 0 && done < bytes) {
        const ssize_t got = read(fd, destination + done, bytes - done);
        if (got <= 0) break;
        done += static_cast<uint64_t>(got);
    }
    if (fd < 0 || done != bytes) throw std::runtime_error("cannot read " + std::to_string(bytes) + " bytes of " + path);
    close(fd);
}

// Lays a file over memory that begins at a page: whole pages are mapped, the rest is read.
void map_file(const std::string &path, uint8_t *destination, uint64_t bytes, bool writable) {
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    const uint64_t whole = bytes / page * page;
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    const bool complete = fd >= 0 && fstat(fd, &status) == 0 && static_cast<uint64_t>(status.st_size) == bytes;
    if (!complete) throw std::runtime_error("expected a file of " + std::to_string(bytes) + " bytes: " + path);
    const int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    const int flags = MAP_PRIVATE | MAP_FIXED;
    if (whole != 0 && mmap(destination, whole, access, flags, fd, 0) == MAP_FAILED) {
        throw std::runtime_error("cannot map " + path);
    }
    if (pread(fd, destination + whole, bytes - whole, static_cast<off_t>(whole)) != static_cast<ssize_t>(bytes - whole)) {
        throw std::runtime_error("cannot read " + path);
    }
    close(fd);
}

// Opens a file that the caller made: what this process leaves has no name of its own making.
int open_made(const std::string &path) {
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) throw std::runtime_error("cannot write " + path);
    return fd;
}

void write_at(int fd, uint64_t place, const uint8_t *source, uint64_t bytes) {
    for (uint64_t done = 0; done < bytes;) {
        const ssize_t put = pwrite(fd, source + done, bytes - done, static_cast<off_t>(place + done));
        if (put <= 0) throw std::runtime_error("cannot write the outputs");
        done += static_cast<uint64_t>(put);
    }
}

GmRole role_of(const TensorFile &tensor) {
    if (tensor.input_path.empty()) return GmRole::Output;
    return tensor.output_at ? GmRole::InOut : GmRole::Input;
}

uint8_t *load_tensor(const std::string &name, const TensorFile &tensor) {
    GmRegion &region = add_gm_region(name.c_str(), role_of(tensor), tensor.bytes, tensor.address);
    uint64_t loaded = 0;
    if (!tensor.input_path.empty()) {
        map_file(tensor.input_path, region.base, tensor.bytes, region.role != GmRole::Input);
        loaded = tensor.bytes;
    }
    std::memset(region.base + loaded, rerun().poison, region.size_bytes + region.slack_bytes - loaded);
    return region.base;
}

uint8_t *base_of(const ListEntry &entry) { return static_cast<uint8_t *>(const_cast<void *>(entry.data)); }

uint8_t *load_list(const std::string &name, const std::vector<ListEntry> &tensors) {
    const std::vector<uint64_t> words = build_list_descriptor(tensors);
    const uint64_t bytes = words.size() * sizeof words[0];
    GmRegion &region = add_gm_region(name.c_str(), GmRole::List, bytes, kOwnAddress);
    std::memcpy(region.base, words.data(), bytes);
    return region.base;
}

// Kernel arguments of the parameters; an output that an earlier parameter of the same name holds is in place.
std::vector<uint8_t *> load_parameters(const Job &job, std::vector<Written> &written) {
    std::vector<uint8_t *> arguments;
    std::map<std::string, uint8_t *> earlier;
    for (const Parameter &parameter : job.parameters) {
        if (parameter.absent || earlier.count(parameter.name) != 0) {
            arguments.push_back(parameter.absent ? nullptr : earlier[parameter.name]);
            continue;
        }
        std::vector<ListEntry> tensors;
        for (size_t i = 0; i < parameter.tensors.size(); ++i) {
            const TensorFile &tensor = parameter.tensors[i];
            const std::string name = parameter.list ? parameter.name + "[" + std::to_string(i) + "]" : parameter.name;
            tensors.push_back({load_tensor(name, tensor), tensor.shape});
            if (tensor.output_at) written.push_back({base_of(tensors.back()), &tensor});
        }
        uint8_t *argument = parameter.list ? load_list(parameter.name, tensors) : base_of(tensors.at(0));
        earlier[parameter.name] = argument;
        arguments.push_back(argument);
    }
    return arguments;
}

uint8_t *load_tiling(const Job &job) {
    TensorFile tiling;
    tiling.input_path = job.tiling_path;
    FILE *file = fopen(job.tiling_path.c_str(), "rb");
    if (file == nullptr) throw std::runtime_error("cannot read " + job.tiling_path);
    fseek(file, 0, SEEK_END);
    tiling.bytes = static_cast<uint64_t>(ftell(file));
    fclose(file);
    GmRegion &region = add_gm_region("tiling", GmRole::Tiling, tiling.bytes, kOwnAddress);
    read_file(tiling.input_path, region.base, tiling.bytes);
    return region.base;
}

uint8_t *make_workspace(uint64_t bytes) {
    GmRegion &region = add_gm_region("workspace", GmRole::Workspace, bytes, kOwnAddress);
    std::memset(region.base, rerun().poison, region.size_bytes + region.slack_bytes);
    return region.base;
}

LoadedKernel load_kernel(CoreKind kind, const std::string &path) {
    if (path.empty()) return {};
    void *entry = load_kernel_symbol(kind, path, "asim_kernel_entry");
    void *task_type = load_kernel_symbol(kind, path, "asim_task_type");
    seal_kernel_data(entry);
    return {reinterpret_cast<KernelEntry>(entry), reinterpret_cast<TaskTypeQuery>(task_type)};
}

void check_built(const LaunchShape &shape, const LoadedKernel &vector, const LoadedKernel &cube) {
    if ((shape.composition.cubes > 0 && cube.entry == nullptr) || (shape.composition.vectors > 0 && vector.entry == nullptr)) {
        throw std::runtime_error("the task type of the kernel needs a kind of core that it was not built for");
    }
}

// Whether the library of a kernel that is a template has an instance for a tiling key.
void check_instance(uint32_t task_type, uint64_t key) {
    if (task_type == kNoInstance) {
        fault(FaultKind::RuntimeFault, "ASCENDC_TPL_SEL",
              "no combination of template parameters has tiling key %llu, which the tiling program chose: nothing was computed",
              static_cast<unsigned long long>(key));
    }
}

bool g_tiling_key_asked = false;   // by any block

void check_tiling_key() {
    g_tiling_key_asked |= block().tiling_key_asked;
    if (block().tiling_key_asked && !block().tiling_key_matched) {
        fault(FaultKind::RuntimeFault, "TILING_KEY_IS",
              "no branch of the kernel handles tiling key %llu, which the tiling program chose: nothing was computed",
              static_cast<unsigned long long>(g_tiling_key));
    }
}

void tell_ub_taken() { printf("ub_taken\t%llu\n", static_cast<unsigned long long>(g_ub_taken_bytes)); }

void tell_reached() {
    printf("reached\t%s\t%s\n", reached_digits(CoreKind::Vector).c_str(), reached_digits(CoreKind::Cube).c_str());
}

void execute(const Job &job) {
    begin_rerun(job.rerun);
    tell_warnings();
    std::vector<Written> written;
    std::vector<uint8_t *> arguments = load_parameters(job, written);
    arguments.push_back(make_workspace(job.workspace_bytes));
    arguments.push_back(load_tiling(job));
    const int trace = open_made(job.trace_path);
    const int outputs = open_made(job.outputs_path);
    const LoadedKernel vector = load_kernel(CoreKind::Vector, job.kernel_path);
    const LoadedKernel cube = load_kernel(CoreKind::Cube, job.cube_kernel_path);
    const LoadedKernel &either = vector.entry != nullptr ? vector : cube;
    const uint32_t task_type = either.task_type(job.tiling_key, job.task_type);
    check_instance(task_type, job.tiling_key);
    const LaunchShape shape = shape_of(job, task_type, job.block_dim);
    check_built(shape, vector, cube);
    open_trace(trace, shape.group_count * shape.composition.cores(), shape.composition, job.record_limit);
    for (const Location &location : job.locations) locate_record(location.block, location.ordinal);
    install_handlers(job.time_limit_ms, job.wall_limit_ms);
    g_tiling_key = job.tiling_key;
    run_blocks(shape, [&] {
        const auto *passed = static_cast<uint8_t *const *>(push_on_data_stack(arguments.data(), arguments.size() * sizeof arguments[0]));
        (on_cube_core() ? cube : vector).entry(passed, static_cast<uint32_t>(arguments.size()));
        check_tiling_key();
    });
    if (job.tiling_key != 0 && !g_tiling_key_asked) {
        fault(FaultKind::RuntimeFault, "TILING_KEY_IS",
              "the tiling program chose tiling key %llu, but the kernel asks for none: it is built for key 0 alone; add a branch "
              "if (TILING_KEY_IS(%llu))", static_cast<unsigned long long>(job.tiling_key), static_cast<unsigned long long>(job.tiling_key));
    }
    close_trace();
    tell_ub_taken();
    if (job.tells_reached) tell_reached();
    for (const Written &output : written) write_at(outputs, *output.tensor->output_at, output.base, output.tensor->bytes);
}

}  // namespace

}  // namespace asim

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s JOB\n", argv[0]);
        return asim::kUsageExit;
    }
    int status = 0;
    try {
        asim::execute(asim::parse_job(argv[1]));
    } catch (const std::exception &error) {
        fprintf(stderr, "%s\n", error.what());
        status = asim::kUsageExit;
    }
    fflush(nullptr);
    _exit(status);  // kernels are sealed
}
