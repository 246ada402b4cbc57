// A device made of host memory and of a simulator: kernels run in a process of their own (device.py).
//
// State of the "hardware" is a folder, $ASCEND_STANDIN_STATE: a file "broken" in it makes every device call fail.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"

struct aclTensor {
    std::vector<int64_t> shape;
    int dtype;
    uint8_t *data;
};
struct aclTensorList {
    std::vector<const aclTensor *> members;
};
struct aclIntArray {
    std::vector<int64_t> values;
};
struct aclFloatArray {
    std::vector<float> values;
};
struct aclBoolArray {
    std::vector<bool> values;
};
struct aclOpExecutor {
    std::ostringstream job;
    std::vector<const aclTensor *> inputs, outputs;
    uint64_t identity = 14695981039346656037ull;
};

namespace {

int g_pending = 0;  // error that the next synchronization reports

std::string setting(const char *name) {
    const char *value = std::getenv(name);
    return value != nullptr ? value : "";
}

bool exists(const std::string &path) { return access(path.c_str(), F_OK) == 0; }

bool broken() { return exists(setting("ASCEND_STANDIN_STATE") + "/broken"); }

size_t bytesOf(const aclTensor &tensor) {
    static const int sizes[] = {4, 2, 1, 4, 1, 0, 2, 2, 4, 8, 8, 8, 1};
    size_t bytes = tensor.dtype == 27 ? 2 : sizes[tensor.dtype];
    for (const int64_t extent : tensor.shape) {
        bytes *= extent;
    }
    return bytes;
}

bool directive(const char *word) {
    std::ifstream in(setting("ASCEND_CUSTOM_OPP_PATH") + "/standin/directives");
    for (std::string line; std::getline(in, line);) {
        if (line == word) {
            return true;
        }
    }
    return false;
}

double noise() {  // a linear congruential generator that goes on from process to process
    const std::string path = setting("ASCEND_STANDIN_STATE") + "/noise";
    uint64_t state = 1;
    std::ifstream(path) >> state;
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    std::ofstream(path) << state;
    return static_cast<double>(state >> 40) / (1 << 24);
}

void record(const std::string &name, double durationUs, int blocks) {
    const std::string path = setting("ASCEND_STANDIN_TASKS");
    if (!path.empty()) {
        std::ofstream(path, std::ios::app) << name << ' ' << durationUs << ' ' << blocks << '\n';
    }
}

void describe(aclOpExecutor &call, const char *name, const aclTensor &tensor, const char *role) {
    call.job << role << ' ' << name << ' ' << tensor.dtype << ' ' << tensor.shape.size();
    for (const int64_t extent : tensor.shape) {
        call.job << ' ' << extent;
    }
    call.job << '\n';
}

std::string indexed(const std::string &folder, const char *role, size_t index) {
    return folder + "/" + role + std::to_string(index);
}

}  // namespace

extern "C" {

int aclInit(const char *) { return 0; }
int aclrtSetDevice(int32_t) { return broken() ? 507033 : 0; }
int aclrtCreateStream(aclrtStream *stream) {
    *stream = reinterpret_cast<void *>(1);
    return 0;
}
int aclrtSynchronizeStreamWithTimeout(aclrtStream, int32_t) {
    const int error = broken() ? 507033 : g_pending;
    g_pending = 0;
    return error;
}
int aclrtMalloc(void **memory, size_t size, aclrtMemMallocPolicy) {
    *memory = std::aligned_alloc(512, (size + 511) / 512 * 512);
    return *memory != nullptr ? 0 : 207001;
}
int aclrtFree(void *memory) {
    std::free(memory);
    return 0;
}
int aclrtMemset(void *memory, size_t, int32_t value, size_t count) {
    std::memset(memory, value, count);
    return 0;
}
int aclrtMemcpy(void *target, size_t, const void *source, size_t count, aclrtMemcpyKind) {
    std::memcpy(target, source, count);
    return 0;
}
const char *aclGetRecentErrMsg() { return "said by the stand-in"; }

aclTensor *aclCreateTensor(const int64_t *dims, uint64_t rank, aclDataType dtype, const int64_t *, int64_t, aclFormat,
                           const int64_t *, uint64_t, void *data) {
    return new aclTensor{{dims, dims + rank}, dtype, static_cast<uint8_t *>(data)};
}
aclTensorList *aclCreateTensorList(const aclTensor *const *value, uint64_t size) {
    return new aclTensorList{{value, value + size}};
}
aclIntArray *aclCreateIntArray(const int64_t *value, uint64_t size) { return new aclIntArray{{value, value + size}}; }
aclFloatArray *aclCreateFloatArray(const float *value, uint64_t size) {
    return new aclFloatArray{{value, value + size}};
}
aclBoolArray *aclCreateBoolArray(const bool *value, uint64_t size) { return new aclBoolArray{std::vector<bool>(value, value + size)}; }

// What generated operator libraries call.
int standinTiling(aclOpExecutor *call) {
    if (directive("refuses_tiling")) {
        return 561002;
    }
    if (directive("exits")) {
        _exit(127);
    }
    std::ifstream kernels(setting("ASCEND_CUSTOM_OPP_PATH") + "/standin/kernels");
    std::string types = "column";
    for (const auto *tensors : {&call->inputs, &call->outputs}) {
        for (const aclTensor *tensor : *tensors) {
            types += " " + std::to_string(tensor->dtype);
        }
    }
    for (std::string line; std::getline(kernels, line);) {
        if (line == types) {
            return 0;
        }
    }
    return 561003;  // no kernel of these types
}
aclOpExecutor *standinBegin() { return new aclOpExecutor(); }
void standinInput(aclOpExecutor *call, const char *name, const aclTensor *tensor) {
    describe(*call, name, *tensor, "in");
    call->inputs.push_back(tensor);
    for (size_t at = 0; at < bytesOf(*tensor); ++at) {
        call->identity = (call->identity ^ tensor->data[at]) * 1099511628211ull;
    }
}
void standinOutput(aclOpExecutor *call, const char *name, const aclTensor *tensor) {
    describe(*call, name, *tensor, "out");
    call->outputs.push_back(tensor);
}
void standinReal(aclOpExecutor *call, const char *name, double value) {
    call->job << "real " << name << ' ' << value << '\n';
}
void standinInteger(aclOpExecutor *call, const char *name, int64_t value) {
    call->job << "integer " << name << ' ' << value << '\n';
}
void standinClean(void *buffer, uint64_t bytes, uint32_t blocks) {
    std::memset(buffer, 0, bytes);
    record("asg_l2_clean", 80.0, static_cast<int>(blocks));
}

int standinLaunch(aclOpExecutor *call, const char *kernel) {
    if (directive("hang")) {
        for (;;) pause();
    }
    if (directive("breaks_device")) {
        std::ofstream(setting("ASCEND_STANDIN_STATE") + "/broken") << "1";
        return 0;
    }
    const std::string folder = setting("ASCEND_CUSTOM_OPP_PATH") + "/standin/run-" + std::to_string(call->identity);
    if (!exists(folder + "/result")) {
        std::system(("mkdir -p '" + folder + "'").c_str());
        std::ofstream(folder + "/job") << call->job.str();
        for (size_t index = 0; index < call->inputs.size(); ++index) {
            const aclTensor &tensor = *call->inputs[index];
            std::ofstream out(indexed(folder, "in", index), std::ios::binary);
            out.write(reinterpret_cast<const char *>(tensor.data), static_cast<std::streamsize>(bytesOf(tensor)));
        }
        const std::string command = "'" + setting("ASCEND_STANDIN_PYTHON") + "' -P '" + setting("ASCEND_STANDIN_DEVICE");
        const int status = std::system((command + "' '" + folder + "'").c_str());
        if (WIFEXITED(status) && WEXITSTATUS(status) == 3) {
            return 361001;  // no kernel of this tiling key
        }
        if (status != 0) {
            g_pending = 507015;  // aicore exception
            return 0;
        }
    }
    for (size_t index = 0; index < call->outputs.size(); ++index) {
        const aclTensor &tensor = *call->outputs[index];
        std::ifstream in(indexed(folder, "out", index), std::ios::binary);
        in.read(reinterpret_cast<char *>(tensor.data), static_cast<std::streamsize>(bytesOf(tensor)));
        if (directive("overruns")) {
            tensor.data[bytesOf(tensor) + 40] = 1;
        }
    }
    double durationUs = 0.0;
    int blocks = 0;
    std::ifstream(folder + "/result") >> durationUs >> blocks;
    if (directive("noisy")) {
        durationUs *= 1.0 + noise();
    }
    record(std::string(kernel) + "_0", durationUs, blocks);
    if (directive("second_kernel")) {
        record("hidden_helper_0", 100.0, blocks);
    }
    if (directive("no_csv")) {
        record("no_csv", 1.0, 1);
    }
    return 0;
}
}
