// Calls an operator on a device as often as its job says and writes the outputs of the last call.
//
//   runner JOB
//
// Last line of standard output, and exit status: "done" 0; "bad TEXT" 2; "fault STAGE CODE TEXT" 3, the device or the
// operator refused or failed; "overrun NAME before|behind" 4, memory around a tensor was written; "changed NAME" 4, an
// input was. Without a library in the job the device itself is tried.

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "call.h"

namespace asg {

constexpr int kBadJob = 2;
constexpr int kFault = 3;
constexpr int kGuard = 4;

using Launch = void (*)(uint32_t blocks, void *stream, void *buffer, uint64_t bytes);
using Execute = int (*)(void *workspace, uint64_t bytes, aclOpExecutor *executor, aclrtStream stream);

struct GuardBroken : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Session {
public:
    explicit Session(const Job &job) : job_(job) {
        check(aclInit(nullptr), "init");
        check(aclrtSetDevice(job.device), "set_device");
        check(aclrtCreateStream(&stream_), "create_stream");
    }

    void run() {
        cleanCache();
        if (job_.library.empty()) {
            tryDevice();
            return;
        }
        void *library = open(job_.library);
        void *prepare = symbol(library, job_.function + "GetWorkspaceSize");
        void *execute = symbol(library, job_.function);
        ArgumentList arguments(job_);
        for (uint32_t round = 0; round < job_.rounds; ++round) {
            cleanCache();
            call(arguments, prepare, reinterpret_cast<Execute>(execute), slotOf(round));
        }
        finish(arguments);
    }

private:
    uint32_t slotOf(uint32_t round) const { return (round + job_.rerun) % job_.slots; }

    static void *open(const std::string &path) {
        void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
        require(library != nullptr, std::string("cannot load ") + path + ": " + (library ? "" : dlerror()));
        return library;
    }

    static void *symbol(void *library, const std::string &name) {
        void *found = dlsym(library, name.c_str());
        require(found != nullptr, "no function " + name);
        return found;
    }

    void synchronize(const char *stage) { check(aclrtSynchronizeStreamWithTimeout(stream_, job_.timeLimitMs), stage); }

    void cleanCache() {
        if (job_.cleaner.empty()) {
            return;
        }
        if (cleanerBuffer_ == nullptr) {
            launchCleaner_ = reinterpret_cast<Launch>(symbol(open(job_.cleaner), "asg_launch_l2_clean"));
            check(aclrtMalloc(&cleanerBuffer_, job_.cleanerBytes, ACL_MEM_MALLOC_HUGE_FIRST), "allocate");
            check(aclrtMemset(cleanerBuffer_, job_.cleanerBytes, 0, job_.cleanerBytes), "fill");
        }
        launchCleaner_(job_.cleanerBlocks, stream_, cleanerBuffer_, job_.cleanerBytes);
        synchronize("clean");
    }

    void call(ArgumentList &arguments, void *prepare, Execute execute, uint32_t slot) {
        uint64_t workspaceBytes = 0;
        aclOpExecutor *executor = nullptr;
        check(arguments.prepare(prepare, slot, &workspaceBytes, &executor), "tiling");
        void *workspace = nullptr;
        if (workspaceBytes > 0) {
            check(aclrtMalloc(&workspace, workspaceBytes, ACL_MEM_MALLOC_HUGE_FIRST), "workspace");
        }
        check(execute(workspace, workspaceBytes, executor, stream_), "launch");
        synchronize("kernel");
        (void)aclrtFree(workspace);
    }

    void finish(const ArgumentList &arguments) const {
        for (const auto &buffer : arguments.buffers()) {
            for (uint32_t slot = 0; slot < job_.slots; ++slot) {
                const std::string where = buffer->overrun(slot);
                if (!where.empty()) {
                    throw GuardBroken("overrun " + buffer->entry().name + " " + where);
                }
            }
            if (!buffer->save(slotOf(job_.rounds - 1))) {
                throw GuardBroken("changed " + buffer->entry().name);
            }
        }
    }

    void tryDevice() {
        constexpr size_t kBytes = 1 << 20;
        std::vector<uint8_t> pattern(kBytes);
        for (size_t at = 0; at < kBytes; ++at) {
            pattern[at] = static_cast<uint8_t>(at * 131 >> 3);
        }
        void *memory = nullptr;
        check(aclrtMalloc(&memory, kBytes, ACL_MEM_MALLOC_HUGE_FIRST), "allocate");
        copyIn(memory, pattern.data(), kBytes);
        if (copyOut(memory, kBytes) != pattern) {
            throw DeviceFault("compare", -1);
        }
        check(aclrtFree(memory), "free");
    }

    const Job &job_;
    aclrtStream stream_ = nullptr;
    Launch launchCleaner_ = nullptr;
    void *cleanerBuffer_ = nullptr;
};

int runJob(const char *path) {
    try {
        const Job job = readJob(path);
        Session(job).run();
        std::printf("done\n");
        return 0;
    } catch (const DeviceFault &fault) {
        const char *detail = aclGetRecentErrMsg();
        std::string text = detail != nullptr ? detail : "";
        std::replace(text.begin(), text.end(), '\n', ' ');
        std::printf("fault %s %s\n", fault.what(), text.c_str());
        return kFault;
    } catch (const GuardBroken &broken) {
        std::printf("%s\n", broken.what());
        return kGuard;
    } catch (const std::exception &error) {
        std::printf("bad %s\n", error.what());
        return kBadJob;
    }
}

}  // namespace asg

// The process is left without destructors: after a fault the runtime may not answer any more.
int main(int argc, char **argv) {
    const int status = argc == 2 ? asg::runJob(argv[1]) : asg::kBadJob;
    std::fflush(stdout);
    _Exit(status);
}
