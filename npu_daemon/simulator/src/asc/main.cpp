// Runs a program that launches kernels by <<<>>>: its main function, with acl calls and launches on the simulated chip.
// Untrusted: the program's code runs in this process. Exit status: the program's own; 3 = fault reported on standard
// output, as the run program does; 125 = the program cannot be started.
#include <cstdio>
#include <stdexcept>
#include <string>

#include "asim/host/chip.h"
#include "asim/machine/kernel_memory.h"
#include "asim/machine/process.h"
#include "asim/semantics/gemm.h"
#include "launch.h"

namespace asim {

namespace {

constexpr int kCannotStartExit = 125;

// What the program's own tiling code asks the platform about.
void describe_chip(const Job &job) {
    fe::PlatFormInfos &chip = host::current_chip();
    const auto bytes = [&](Space space) { return job.memory_bytes[static_cast<size_t>(space)]; };
    chip.soc_version = job.soc_version;
    chip.cube_cores = job.aic_cores;
    chip.vector_cores = chip.core_num = job.aiv_cores;
    chip.memory_bytes = {{fe::LocalMemType::UB, job.ub_bytes},
                         {fe::LocalMemType::L1, bytes(Space::L1)},
                         {fe::LocalMemType::L0_A, bytes(Space::L0A)},
                         {fe::LocalMemType::L0_B, bytes(Space::L0B)},
                         {fe::LocalMemType::L0_C, bytes(Space::L0C)}};
}

int execute(const Job &job, int argc, char **argv) {
    setvbuf(stdout, nullptr, _IOLBF, 0);  // what was printed before a fault is not lost
    install_handlers(job.time_limit_ms, job.wall_limit_ms);
    show_device_output();
    allow_host_memory();
    describe_chip(job);
    if (job.price_only) skip_products();
    std::string name = job.kernel_path.empty() ? job.cube_kernel_path : job.kernel_path;
    argv[0] = name.data();
    return load_program(job)(argc, argv);
}

}  // namespace

}  // namespace asim

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s JOB ARGUMENT...\n", argv[0]);
        return asim::kCannotStartExit;
    }
    try {
        return asim::execute(asim::parse_job(argv[1]), argc - 1, argv + 1);
    } catch (const std::exception &error) {
        fprintf(stderr, "%s\n", error.what());
        return asim::kCannotStartExit;
    }
}
