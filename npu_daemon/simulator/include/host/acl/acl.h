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
constexpr uint32_t ACL_EVENT_TIME_LINE = 8;

enum aclrtMemMallocPolicy { ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_NORMAL_ONLY };
enum aclrtMemcpyKind {
    ACL_MEMCPY_HOST_TO_HOST, ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST, ACL_MEMCPY_DEVICE_TO_DEVICE
};
enum aclrtRunMode { ACL_DEVICE, ACL_HOST };
enum aclDataType {
    ACL_DT_UNDEFINED = -1, ACL_FLOAT = 0, ACL_FLOAT16 = 1, ACL_INT8 = 2, ACL_INT32 = 3, ACL_UINT8 = 4, ACL_INT16 = 6, ACL_UINT16 = 7,
    ACL_UINT32 = 8, ACL_INT64 = 9, ACL_UINT64 = 10, ACL_DOUBLE = 11, ACL_BOOL = 12, ACL_BF16 = 27
};
enum aclrtLastErrLevel { ACL_RT_THREAD_LEVEL };

#pragma GCC visibility push(default)
extern "C" {

aclError aclInit(const char *config_path);
aclError aclFinalize();
const char *aclGetRecentErrMsg();

aclError aclrtSetDevice(int32_t device);
aclError aclrtResetDevice(int32_t device);
aclError aclrtResetDeviceForce(int32_t device);
aclError aclrtGetDevice(int32_t *device);
aclError aclrtGetDeviceCount(uint32_t *count);
const char *aclrtGetSocName();
aclError aclrtGetRunMode(aclrtRunMode *mode);
aclError aclrtSynchronizeDevice();
aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout_ms);
aclError aclrtGetLastError(aclrtLastErrLevel level);
aclError aclrtCreateContext(aclrtContext *context, int32_t device);
aclError aclrtDestroyContext(aclrtContext context);
aclError aclrtSetCurrentContext(aclrtContext context);
aclError aclrtGetCurrentContext(aclrtContext *context);
aclError aclrtCreateStream(aclrtStream *stream);
aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag);
aclError aclrtDestroyStreamForce(aclrtStream stream);
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout_ms);
aclError aclrtDestroyStream(aclrtStream stream);
aclError aclrtSynchronizeStream(aclrtStream stream);
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);
aclError aclrtCreateEvent(aclrtEvent *event);
aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag);
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
aclError aclrtDestroyEvent(aclrtEvent event);
aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag);
aclError aclrtSynchronizeEvent(aclrtEvent event);
// By the clock of programs: a millisecond passes each time that an event is recorded. Prices tell the time of the device.
aclError aclrtEventElapsedTime(float *elapsed_ms, aclrtEvent start, aclrtEvent end);

// Device memory is global memory of the simulated chip: its bounds are checked, and it starts as poison.
aclError aclrtMalloc(void **pointer, size_t bytes, aclrtMemMallocPolicy policy);
aclError aclrtMallocAlign32(void **pointer, size_t bytes, aclrtMemMallocPolicy policy);
aclError aclrtFree(void *pointer);
aclError aclrtMallocHost(void **pointer, size_t bytes);
aclError aclrtFreeHost(void *pointer);
aclError aclrtMemcpy(void *target, size_t target_bytes, const void *source, size_t bytes, aclrtMemcpyKind kind);
aclError aclrtMemcpyAsync(void *target, size_t target_bytes, const void *source, size_t bytes, aclrtMemcpyKind kind,
                          aclrtStream stream);
aclError aclrtMemset(void *target, size_t target_bytes, int32_t value, size_t bytes);
// Where flags between cores lie, for kernels to hand to SetSyncBaseAddr; nothing can be read there.
aclError aclrtGetHardwareSyncAddr(void **address);
aclError aclrtMemsetAsync(void *target, size_t target_bytes, int32_t value, size_t bytes, aclrtStream stream);

size_t aclDataTypeSize(aclDataType type);
float aclFloat16ToFloat(aclFloat16 value);
aclFloat16 aclFloatToFloat16(float value);
}
#pragma GCC visibility pop
