#include "asim/machine/process.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <new>
#include <set>
#include <stdexcept>

#include "asim/machine/block.h"
#include "asim/machine/data_stack.h"
#include "asim/machine/gm.h"
#include "asim/machine/report.h"

namespace asim {

namespace {

constexpr size_t kSignalStackBytes = 64 * 1024;
constexpr int kMaxFrames = 24;

// Reports from a signal handler, with the frames of the code that the signal interrupted.
void report_here(const char *kind, const char *message, void *interrupted) {
    void *frames[kMaxFrames];
    const int frame_count = backtrace(frames, kMaxFrames);
    const auto *context = static_cast<const ucontext_t *>(interrupted);
    const auto instruction = static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RIP]);
    for (int i = 0; i < frame_count; ++i) {
        // Told as a return address is, which the others are: behind the instruction.
        if (reinterpret_cast<uintptr_t>(frames[i]) == instruction) frames[i] = reinterpret_cast<void *>(instruction + 1);
    }
    write_report(kind, "kernel", message, frames, frame_count);
}

void on_crash(int signal_number, siginfo_t *, void *interrupted) {
    const char *what = signal_number == SIGSEGV || signal_number == SIGBUS
                           ? "crashed: functions call each other so deeply that the 1 MiB stack of their return addresses is full, or the simulator has a fault"
                       : signal_number == SIGFPE ? "crashed: integer division by zero"
                                                 : "crashed: illegal instruction or abort";
    char message[256];
    snprintf(message, sizeof message, "%s, after %s", what, block().last_call);
    report_here("runtime_fault", message, interrupted);
    _exit(kFaultExit);
}

void on_alarm(int signal_number, siginfo_t *, void *interrupted) {
    char message[256];
    snprintf(message, sizeof message,
             signal_number == SIGALRM
                 ? "the time on the wall was up before its CPU time: the host is busy, or it waits; the last instruction was %s"
                 : "still running when the time was up; the last instruction was %s: look for an endless loop",
             block().last_call);
    report_here("timeout", message, interrupted);
    _exit(kFaultExit);
}

void start_timer(__itimer_which_t which, uint32_t limit_ms) {
    itimerval timer{};
    timer.it_value.tv_sec = limit_ms / 1000;
    timer.it_value.tv_usec = (limit_ms % 1000) * 1000;
    setitimer(which, &timer, nullptr);
}

// A call wanted memory that the limit of the run does not allow.
void on_no_memory() {
    std::set_new_handler(nullptr);      // once: what follows has to do with what there is
    char message[256];
    snprintf(message, sizeof message, "the run takes more memory than its limit allows, in or after %s: use fewer blocks at a time, or smaller objects",
             block().last_call);
    void *frames[kMaxFrames];
    write_report("resource_limit", "kernel", message, frames, backtrace(frames, kMaxFrames));
    _exit(kFaultExit);
}

// Calls f(name, begin, bytes) for each section of a loaded library that holds something, as its file says: nothing that the
// library could say itself is asked.
template <typename F>
void for_each_section(const Dl_info &image, F f) {
    std::ifstream file(image.dli_fname, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const auto *header = reinterpret_cast<const ElfW(Ehdr) *>(bytes.data());
    const auto *sections = reinterpret_cast<const ElfW(Shdr) *>(bytes.data() + header->e_shoff);
    const char *names = bytes.data() + sections[header->e_shstrndx].sh_offset;
    for (uint32_t i = 0; i < header->e_shnum; ++i) {
        if (sections[i].sh_size == 0) continue;
        f(std::string(names + sections[i].sh_name), static_cast<uint8_t *>(image.dli_fbase) + sections[i].sh_addr, sections[i].sh_size);
    }
}

// Arrays and tables of the kernel library: the sections that it keeps constants in, and no others.
void add_constants(const Dl_info &image) {
    for_each_section(image, [](const std::string &name, const uint8_t *begin, uint64_t bytes) {
        const bool constants = name.rfind(".rodata", 0) == 0 || name.rfind(".data.rel.ro", 0) == 0 || name == "asim_task_types";
        if (constants) add_gm_constants(begin, bytes);
    });
}

// Makes the variables of a loaded library read-only.
int seal_segments(dl_phdr_info *library, size_t, void *load_address) {
    if (library->dlpi_addr != reinterpret_cast<ElfW(Addr)>(load_address)) return 0;
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    for (int i = 0; i < library->dlpi_phnum; ++i) {
        const ElfW(Phdr) &segment = library->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) == 0) continue;
        const uint64_t begin = (library->dlpi_addr + segment.p_vaddr) / page * page;
        const uint64_t end = library->dlpi_addr + segment.p_vaddr + segment.p_memsz;
        mprotect(reinterpret_cast<void *>(begin), end - begin, PROT_READ);
    }
    return 1;
}

// Static arrays that the library keeps in global memory stay writable; blocks access them as any global memory.
void open_gm_arrays(const Dl_info &image) {
    for_each_section(image, [](const std::string &name, uint8_t *begin, uint64_t bytes) {
        if (name == "asim_gm_static") add_gm_arrays(begin, begin + bytes);
    });
}

}  // namespace

void install_handlers(uint32_t time_limit_ms, uint32_t wall_limit_ms) {
    void *frame;
    backtrace(&frame, 1);  // loads what it needs now, not inside a handler
    static uint8_t stack[kSignalStackBytes];
    stack_t alternate{};
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, nullptr);
    struct sigaction crash{};
    crash.sa_sigaction = on_crash;
    crash.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(number, &crash, nullptr);
    struct sigaction alarm_action{};
    alarm_action.sa_sigaction = on_alarm;
    alarm_action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (const int number : {SIGPROF, SIGALRM}) sigaddset(&alarm_action.sa_mask, number);   // one report
    for (const int number : {SIGPROF, SIGALRM}) sigaction(number, &alarm_action, nullptr);
    std::set_new_handler(on_no_memory);
    start_timer(ITIMER_PROF, time_limit_ms);  // CPU time: what else runs on the host does not count
    start_timer(ITIMER_REAL, wall_limit_ms);
}

void *load_kernel_symbol(CoreKind kind, const std::string &path, const char *symbol) {
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(std::string("cannot load the kernel: ") + dlerror());
    void *address = dlsym(library, symbol);
    if (address == nullptr) throw std::runtime_error(std::string("the kernel library has no ") + symbol);
    set_kernel_image(kind, address);
    Dl_info image;
    static std::set<const void *> known;
    if (dladdr(address, &image) != 0 && known.insert(image.dli_fbase).second) add_constants(image);
    return address;
}

void seal_kernel_data(const void *symbol) {
    Dl_info image;
    if (dladdr(symbol, &image) == 0) return;
    dl_iterate_phdr(seal_segments, image.dli_fbase);
    open_gm_arrays(image);
}

}  // namespace asim
