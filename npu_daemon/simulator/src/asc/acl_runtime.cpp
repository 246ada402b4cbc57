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
char g_handle;                      // what contexts and streams point to
uint64_t g_records = 0;             // of events, the milliseconds of the clock that they read

struct Event {
    uint64_t recorded_ms = 0;
};

aclError refuse(aclError code, const char *call, const char *what, size_t bytes) {
    snprintf(g_message, sizeof g_message, "%s: %s (%zu bytes)", call, what, bytes);
    fprintf(stderr, "[acl] %s\n", g_message);
    return code;
}

aclError hand_out(void **handle) {
    *handle = &g_handle;
    return ACL_SUCCESS;
}

aclError hand_out_event(aclrtEvent *event) {
    *event = new Event;
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
aclError aclrtGetHardwareSyncAddr(void **address) { return hand_out(address); }
aclError aclrtResetDevice(int32_t) { return ACL_SUCCESS; }
aclError aclrtSynchronizeDevice() { return ACL_SUCCESS; }
aclError aclrtGetLastError(aclrtLastErrLevel) { return ACL_SUCCESS; }
aclError aclrtCreateContext(aclrtContext *context, int32_t) { return hand_out(context); }
aclError aclrtDestroyContext(aclrtContext) { return ACL_SUCCESS; }
aclError aclrtCreateStream(aclrtStream *stream) { return hand_out(stream); }
aclError aclrtDestroyStream(aclrtStream) { return ACL_SUCCESS; }
aclError aclrtSynchronizeStream(aclrtStream) { return ACL_SUCCESS; }
aclError aclrtStreamWaitEvent(aclrtStream, aclrtEvent) { return ACL_SUCCESS; }
aclError aclrtResetDeviceForce(int32_t) { return ACL_SUCCESS; }
aclError aclrtSynchronizeDeviceWithTimeout(int32_t) { return ACL_SUCCESS; }
aclError aclrtSetCurrentContext(aclrtContext) { return ACL_SUCCESS; }
aclError aclrtGetCurrentContext(aclrtContext *context) { return hand_out(context); }
aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t, uint32_t) { return hand_out(stream); }
aclError aclrtDestroyStreamForce(aclrtStream) { return ACL_SUCCESS; }
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream, int32_t) { return ACL_SUCCESS; }
aclError aclrtCreateEvent(aclrtEvent *event) { return hand_out_event(event); }
aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t) { return hand_out_event(event); }
aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t) { return hand_out_event(event); }
aclError aclrtSynchronizeEvent(aclrtEvent) { return ACL_SUCCESS; }

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream) {
    if (event == nullptr) return refuse(ACL_ERROR_INVALID_PARAM, "aclrtRecordEvent", "there is no event", 0);
    static_cast<Event *>(event)->recorded_ms = ++g_records;
    return ACL_SUCCESS;
}

aclError aclrtEventElapsedTime(float *elapsed_ms, aclrtEvent start, aclrtEvent end) {
    if (start == nullptr || end == nullptr) return refuse(ACL_ERROR_INVALID_PARAM, "aclrtEventElapsedTime", "there is no event", 0);
    *elapsed_ms = static_cast<float>(static_cast<Event *>(end)->recorded_ms) - static_cast<float>(static_cast<Event *>(start)->recorded_ms);
    return ACL_SUCCESS;
}

aclError aclrtDestroyEvent(aclrtEvent event) {
    delete static_cast<Event *>(event);
    return ACL_SUCCESS;
}

aclError aclrtGetDevice(int32_t *device) {
    *device = 0;
    return ACL_SUCCESS;
}

aclError aclrtGetDeviceCount(uint32_t *count) {
    *count = 1;
    return ACL_SUCCESS;
}

// By which host code tells architectures apart, and all chips that are simulated have this one.
const char *aclrtGetSocName() { return "Ascend910B2"; }

aclError aclrtGetRunMode(aclrtRunMode *mode) {
    *mode = ACL_HOST;
    return ACL_SUCCESS;
}

size_t aclDataTypeSize(aclDataType type) {
    switch (type) {
        case ACL_INT8: case ACL_UINT8: case ACL_BOOL: return 1;
        case ACL_FLOAT16: case ACL_BF16: case ACL_INT16: case ACL_UINT16: return 2;
        case ACL_FLOAT: case ACL_INT32: case ACL_UINT32: return 4;
        case ACL_INT64: case ACL_UINT64: case ACL_DOUBLE: return 8;
        default: return 0;
    }
}

aclError aclrtMalloc(void **pointer, size_t bytes, aclrtMemMallocPolicy) {
    if (pointer == nullptr || bytes == 0) return refuse(ACL_ERROR_INVALID_PARAM, "aclrtMalloc", "nothing to allocate", bytes);
    char name[48];
    snprintf(name, sizeof name, "device allocation %d", ++g_allocations);
    const GmRegion &region = add_gm_region(name, GmRole::InOut, bytes, kOwnAddress);
    std::memset(region.base, rerun().poison, region.size_bytes + region.slack_bytes);
    *pointer = region.base;
    return ACL_SUCCESS;
}

aclError aclrtMallocAlign32(void **pointer, size_t bytes, aclrtMemMallocPolicy policy) { return aclrtMalloc(pointer, bytes, policy); }

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

aclError aclrtMemsetAsync(void *target, size_t target_bytes, int32_t value, size_t bytes, aclrtStream) {
    return aclrtMemset(target, target_bytes, value, bytes);
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
