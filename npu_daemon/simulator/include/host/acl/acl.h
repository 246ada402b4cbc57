// The part of the acl interface that programs launching kernels by <<<>>> use: device, streams, memory, events.
// Calls run at once and in program order, so streams and events have nothing to wait for.
#pragma once
#include <cstddef>
#include <cstdint>

using aclError = int;
using aclrtStream = void *;
using aclrtContext = void *;
using aclrtEvent = void *;
using aclFloat16 = uint16_t;

constexpr aclError ACL_SUCCESS = 0;
constexpr aclError ACL_ERROR_NONE = 0;
constexpr aclError ACL_ERROR_INVALID_PARAM = 100000;
constexpr aclError ACL_ERROR_BAD_ALLOC = 200000;
constexpr uint32_t ACL_EVENT_SYNC = 1;

enum aclrtMemMallocPolicy { ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_NORMAL_ONLY };
enum aclrtMemcpyKind {
    ACL_MEMCPY_HOST_TO_HOST, ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST, ACL_MEMCPY_DEVICE_TO_DEVICE
};
enum aclrtLastErrLevel { ACL_RT_THREAD_LEVEL };

#pragma GCC visibility push(default)
extern "C" {

aclError aclInit(const char *config_path);
aclError aclFinalize();
const char *aclGetRecentErrMsg();

aclError aclrtSetDevice(int32_t device);
aclError aclrtResetDevice(int32_t device);
aclError aclrtSynchronizeDevice();
aclError aclrtGetLastError(aclrtLastErrLevel level);
aclError aclrtCreateContext(aclrtContext *context, int32_t device);
aclError aclrtDestroyContext(aclrtContext context);
aclError aclrtCreateStream(aclrtStream *stream);
aclError aclrtDestroyStream(aclrtStream stream);
aclError aclrtSynchronizeStream(aclrtStream stream);
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);
aclError aclrtCreateEvent(aclrtEvent *event);
aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag);
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
aclError aclrtDestroyEvent(aclrtEvent event);

// Device memory is global memory of the simulated chip: its bounds are checked, and it starts as poison.
aclError aclrtMalloc(void **pointer, size_t bytes, aclrtMemMallocPolicy policy);
aclError aclrtFree(void *pointer);
aclError aclrtMallocHost(void **pointer, size_t bytes);
aclError aclrtFreeHost(void *pointer);
aclError aclrtMemcpy(void *target, size_t target_bytes, const void *source, size_t bytes, aclrtMemcpyKind kind);
aclError aclrtMemcpyAsync(void *target, size_t target_bytes, const void *source, size_t bytes, aclrtMemcpyKind kind,
                          aclrtStream stream);
aclError aclrtMemset(void *target, size_t target_bytes, int32_t value, size_t bytes);

float aclFloat16ToFloat(aclFloat16 value);
aclFloat16 aclFloatToFloat16(float value);
}
#pragma GCC visibility pop
