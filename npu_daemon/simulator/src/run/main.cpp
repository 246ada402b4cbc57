// Executes one launch of a kernel library on files of inputs, and writes outputs and trace.
// Untrusted: candidate code runs in this process. Exit status 0 = ran, 3 = fault reported on standard output.
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>

#include "asim/machine/block.h"
#include "asim/machine/fault.h"
#include "asim/machine/gm.h"
#include "asim/machine/list_descriptor.h"
#include "asim/machine/report.h"
#include "asim/machine/scheduler.h"
#include "asim/trace/writer.h"
#include "job.h"

namespace asim {

namespace {

using KernelEntry = void (*)(uint8_t *const *, uint32_t);

constexpr uint8_t kPoison = 0xff;
constexpr size_t kSignalStackBytes = 64 * 1024;
constexpr int kUsageExit = 2;
constexpr int kMaxFrames = 24;

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

void write_file(const std::string &path, const uint8_t *source, uint64_t bytes) {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    uint64_t done = 0;
    while (fd >= 0 && done < bytes) {
        const ssize_t put = write(fd, source + done, bytes - done);
        if (put <= 0) break;
        done += static_cast<uint64_t>(put);
    }
    if (fd < 0 || done != bytes) throw std::runtime_error("cannot write " + path);
    close(fd);
}

GmRole role_of(const TensorFile &tensor) {
    if (tensor.input_path.empty()) return GmRole::Output;
    return tensor.output_path.empty() ? GmRole::Input : GmRole::InOut;
}

uint8_t *load_tensor(const std::string &name, const TensorFile &tensor) {
    GmRegion &region = add_gm_region(name.c_str(), role_of(tensor), tensor.bytes, tensor.address);
    uint64_t loaded = 0;
    if (!tensor.input_path.empty()) {
        read_file(tensor.input_path, region.base, tensor.bytes);
        loaded = tensor.bytes;
    }
    std::memset(region.base + loaded, kPoison, region.size_bytes + region.slack_bytes - loaded);
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
            if (!tensor.output_path.empty()) written.push_back({base_of(tensors.back()), &tensor});
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
    std::memset(region.base, kPoison, region.size_bytes + region.slack_bytes);
    return region.base;
}

// Reports from a signal handler, with the frames of the code that the signal interrupted.
void report_here(const char *kind, const char *message) {
    void *frames[kMaxFrames];
    write_report(kind, "kernel", message, frames, backtrace(frames, kMaxFrames));
}

void on_crash(int signal_number) {
    const char *what = signal_number == SIGSEGV || signal_number == SIGBUS
                           ? "crashed: a raw pointer (GetPhyAddr, GM_ADDR or an array) was used outside its memory, or the 1 MiB stack is full"
                       : signal_number == SIGFPE ? "crashed: integer division by zero"
                                                 : "crashed: illegal instruction or abort";
    char message[256];
    snprintf(message, sizeof message, "%s, after %s", what, block().last_call);
    report_here("runtime_fault", message);
    _exit(kFaultExit);
}

void on_alarm(int) {
    char message[256];
    snprintf(message, sizeof message, "still running when the time was up; the last instruction was %s: look for an endless loop",
             block().last_call);
    report_here("timeout", message);
    _exit(kFaultExit);
}

void install_handlers(uint32_t time_limit_ms) {
    void *frame;
    backtrace(&frame, 1);  // loads what it needs now, not inside a handler
    static uint8_t stack[kSignalStackBytes];
    stack_t alternate{};
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, nullptr);
    struct sigaction crash{};
    crash.sa_handler = on_crash;
    crash.sa_flags = SA_ONSTACK | SA_RESETHAND;
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(number, &crash, nullptr);
    struct sigaction alarm_action{};
    alarm_action.sa_handler = on_alarm;
    alarm_action.sa_flags = SA_ONSTACK;
    sigaction(SIGPROF, &alarm_action, nullptr);
    itimerval timer{};
    timer.it_value.tv_sec = time_limit_ms / 1000;
    timer.it_value.tv_usec = (time_limit_ms % 1000) * 1000;
    setitimer(ITIMER_PROF, &timer, nullptr);  // CPU time: what else runs on the host does not count
}

// Arrays of the kernel library that kernels pass to GlobalTensor: whatever it holds beside code.
int add_constants(dl_phdr_info *library, size_t, void *load_address) {
    if (library->dlpi_addr != reinterpret_cast<ElfW(Addr)>(load_address)) return 0;
    for (int i = 0; i < library->dlpi_phnum; ++i) {
        const ElfW(Phdr) &segment = library->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) != 0) continue;
        add_gm_constants(reinterpret_cast<const void *>(library->dlpi_addr + segment.p_vaddr), segment.p_memsz);
    }
    return 1;
}

KernelEntry load_kernel(const std::string &path) {
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(std::string("cannot load the kernel: ") + dlerror());
    void *entry = dlsym(library, "asim_kernel_entry");
    if (entry == nullptr) throw std::runtime_error("the kernel library has no entry");
    set_kernel_image(entry);
    Dl_info image;
    if (dladdr(entry, &image) != 0) dl_iterate_phdr(add_constants, image.dli_fbase);
    return reinterpret_cast<KernelEntry>(entry);
}

void check_tiling_key() {
    if (block().tiling_key_asked && !block().tiling_key_matched) {
        fault(FaultKind::RuntimeFault, "TILING_KEY_IS",
              "no branch of the kernel handles tiling key %llu, which the tiling program chose: nothing was computed",
              static_cast<unsigned long long>(g_tiling_key));
    }
}

void execute(const Job &job) {
    std::vector<Written> written;
    std::vector<uint8_t *> arguments = load_parameters(job, written);
    arguments.push_back(make_workspace(job.workspace_bytes));
    arguments.push_back(load_tiling(job));
    const int trace = open(job.trace_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (trace < 0) throw std::runtime_error("cannot write " + job.trace_path);
    open_trace(trace, job.block_dim, job.record_limit);
    install_handlers(job.time_limit_ms);
    g_tiling_key = job.tiling_key;
    const KernelEntry entry = load_kernel(job.kernel_path);
    run_blocks({job.block_dim, job.core_count, job.ub_bytes}, [&] {
        entry(arguments.data(), static_cast<uint32_t>(arguments.size()));
        check_tiling_key();
    });
    close_trace();
    for (const Written &output : written) write_file(output.tensor->output_path, output.base, output.tensor->bytes);
}

}  // namespace

}  // namespace asim

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s JOB\n", argv[0]);
        return asim::kUsageExit;
    }
    try {
        asim::execute(asim::parse_job(argv[1]));
    } catch (const std::exception &error) {
        fprintf(stderr, "%s\n", error.what());
        return asim::kUsageExit;
    }
    return 0;
}
