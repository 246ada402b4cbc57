// Runs a program that launches kernels by <<<>>>: its main function, with acl calls and launches on the simulated chip.
// Untrusted: the program's code runs in this process. Exit status: the program's own; 3 = fault reported on standard
// output, as the run program does; 2 = the program cannot be started.
#include <cstdio>
#include <stdexcept>
#include <string>

#include "asim/machine/device_output.h"
#include "asim/machine/process.h"
#include "launch.h"

namespace asim {

namespace {

constexpr int kUsageExit = 2;

using Main = int (*)(int, char **);

int execute(const Job &job, int argc, char **argv) {
    prepare_launches(job);
    show_device_output();
    setvbuf(stdout, nullptr, _IOLBF, 0);  // what was printed before a fault is not lost
    install_handlers(job.time_limit_ms);
    std::string name = job.kernel_path;
    argv[0] = name.data();
    const CoreKind kind = job.task_type == KERNEL_TYPE_AIC_ONLY ? CoreKind::Cube : CoreKind::Vector;
    return reinterpret_cast<Main>(load_kernel_symbol(kind, job.kernel_path, "main"))(argc, argv);
}

}  // namespace

}  // namespace asim

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s JOB ARGUMENT...\n", argv[0]);
        return asim::kUsageExit;
    }
    try {
        return asim::execute(asim::parse_job(argv[1]), argc - 1, argv + 1);
    } catch (const std::exception &error) {
        fprintf(stderr, "%s\n", error.what());
        return asim::kUsageExit;
    }
}
