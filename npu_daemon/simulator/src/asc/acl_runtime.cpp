// The acl calls of acl/acl.h on the simulated chip's global memory.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "acl/acl.h"
#include "asim/machine/gm.h"
#include "asim/machine/rerun.h"
#include "asim/numeric/types.h"

namespace asim {

namespace {

constexpr size_t kHostAlignment = 64;
char g_message[256];
int g_allocations = 0;
char g_handle;                      // what contexts, streams and events point to

aclError refuse(aclError code, const char *call, const char *what, size_t bytes) {
    snprintf(g_message, sizeof g_message, "%s: %s (%zu bytes)", call, what, bytes);
    fprintf(stderr, "[acl] %s\n", g_message);
    return code;
}

aclError hand_out(void **handle) {
    *handle = &g_handle;
    return ACL_SUCCESS;
}

// Whether [pointer, pointer + bytes) leaves the device allocation it starts in; host memory has no bounds here.
bool leaves_allocation(const void *pointer, size_t bytes) {
    const GmRegion *region = find_gm_region(pointer);
    if (region == nullptr) return false;
    return static_cast<const uint8_t *>(pointer) + bytes > region->base + region->size_bytes + region->slack_bytes;
}

}  // namespace

}  // namespace asim

using namespace asim;

extern "C" {

aclError aclInit(const char *) { return ACL_SUCCESS; }
aclError aclFinalize() { return ACL_SUCCESS; }
const char *aclGetRecentErrMsg() { return g_message; }

aclError aclrtSetDevice(int32_t) { return ACL_SUCCESS; }
aclError aclrtResetDevice(int32_t) { return ACL_SUCCESS; }
aclError aclrtSynchronizeDevice() { return ACL_SUCCESS; }
aclError aclrtGetLastError(aclrtLastErrLevel) { return ACL_SUCCESS; }
aclError aclrtCreateContext(aclrtContext *context, int32_t) { return hand_out(context); }
aclError aclrtDestroyContext(aclrtContext) { return ACL_SUCCESS; }
aclError aclrtCreateStream(aclrtStream *stream) { return hand_out(stream); }
aclError aclrtDestroyStream(aclrtStream) { return ACL_SUCCESS; }
aclError aclrtSynchronizeStream(aclrtStream) { return ACL_SUCCESS; }
aclError aclrtStreamWaitEvent(aclrtStream, aclrtEvent) { return ACL_SUCCESS; }
aclError aclrtCreateEvent(aclrtEvent *event) { return hand_out(event); }
aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t) { return hand_out(event); }
aclError aclrtRecordEvent(aclrtEvent, aclrtStream) { return ACL_SUCCESS; }
aclError aclrtDestroyEvent(aclrtEvent) { return ACL_SUCCESS; }

aclError aclrtMalloc(void **pointer, size_t bytes, aclrtMemMallocPolicy) {
    if (pointer == nullptr || bytes == 0) return refuse(ACL_ERROR_INVALID_PARAM, "aclrtMalloc", "nothing to allocate", bytes);
    char name[48];
    snprintf(name, sizeof name, "device allocation %d", ++g_allocations);
    const GmRegion &region = add_gm_region(name, GmRole::InOut, bytes, kOwnAddress);
    std::memset(region.base, rerun().poison, region.size_bytes + region.slack_bytes);
    *pointer = region.base;
    return ACL_SUCCESS;
}

aclError aclrtFree(void *pointer) {
    if (remove_gm_region(pointer)) return ACL_SUCCESS;
    return refuse(ACL_ERROR_INVALID_PARAM, "aclrtFree", "this is no device allocation", 0);
}

aclError aclrtMallocHost(void **pointer, size_t bytes) {
    *pointer = aligned_alloc(kHostAlignment, (bytes + kHostAlignment - 1) / kHostAlignment * kHostAlignment);
    return *pointer != nullptr ? ACL_SUCCESS : refuse(ACL_ERROR_BAD_ALLOC, "aclrtMallocHost", "out of memory", bytes);
}

aclError aclrtFreeHost(void *pointer) {
    free(pointer);
    return ACL_SUCCESS;
}

aclError aclrtMemcpy(void *target, size_t target_bytes, const void *source, size_t bytes, aclrtMemcpyKind) {
    if (bytes > target_bytes || leaves_allocation(target, bytes) || leaves_allocation(source, bytes)) {
        return refuse(ACL_ERROR_INVALID_PARAM, "aclrtMemcpy", "out of bounds of an allocation", bytes);
    }
    std::memcpy(target, source, bytes);
    return ACL_SUCCESS;
}

aclError aclrtMemcpyAsync(void *target, size_t target_bytes, const void *source, size_t bytes, aclrtMemcpyKind kind,
                          aclrtStream) {
    return aclrtMemcpy(target, target_bytes, source, bytes, kind);
}

aclError aclrtMemset(void *target, size_t target_bytes, int32_t value, size_t bytes) {
    if (bytes > target_bytes || leaves_allocation(target, bytes)) {
        return refuse(ACL_ERROR_INVALID_PARAM, "aclrtMemset", "out of bounds of an allocation", bytes);
    }
    std::memset(target, value, bytes);
    return ACL_SUCCESS;
}

float aclFloat16ToFloat(aclFloat16 value) {
    half number;
    std::memcpy(&number, &value, sizeof value);
    return static_cast<float>(number);
}

aclFloat16 aclFloatToFloat16(float value) {
    const half number(value);
    aclFloat16 bits;
    std::memcpy(&bits, &number, sizeof bits);
    return bits;
}
}
